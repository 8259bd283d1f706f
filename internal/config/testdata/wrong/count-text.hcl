session "worker" {
  count  = "seven"
  target = "rtx-2060"
}
