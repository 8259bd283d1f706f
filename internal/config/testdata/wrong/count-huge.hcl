session "worker" {
  count  = 10001
  target = "rtx-2060"
}
