session "worker" {
  target = "rtx-2060"
  fit {
    max_error = "half"
  }
}
