session "worker" {
  target = rtx2060
}
