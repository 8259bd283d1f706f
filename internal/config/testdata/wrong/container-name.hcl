session "worker" {
  count  = 2
  target = "rtx-2060"
}

session "worker-1" {
  target = "rtx-2060"
}
