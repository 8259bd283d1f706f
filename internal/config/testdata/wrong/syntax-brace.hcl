session "worker" {
  target = "rtx-2060"
}

session "open" {
  target = "rtx-2060"

session "next" {
  target = "rtx-2060"
}
