session "worker" {
  count  = 2.5
  target = "rtx-2060"
}
