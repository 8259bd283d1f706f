session "worker" {
  count  = -1
  target = "rtx-2060"
}
