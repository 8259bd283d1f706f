session "worker" {
  target = "rtx-2060"
}

session "worker" {
  target = "rtx-2060"
}
