session "worker" {
  count  = null
  target = "rtx-2060"
}
