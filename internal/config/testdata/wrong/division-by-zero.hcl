session "worker" {
  count  = 1 / 0
  target = "rtx-2060"
}
