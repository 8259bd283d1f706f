session "worker" "second" {
  target = "rtx-2060"
}
