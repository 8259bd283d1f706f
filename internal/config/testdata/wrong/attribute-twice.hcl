session "worker" {
  target = "rtx-2060"
  target = "rtx-3090"
}
