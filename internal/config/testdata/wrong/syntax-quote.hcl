session "worker" {
  target = "rtx-2060
}
