session "worker" {
  count  = count.index + 1
  target = "rtx-2060"
}
