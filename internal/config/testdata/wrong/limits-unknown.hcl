session "worker" {
  target = "rtx-2060"

  limits {
    cpu = 4
  }
}
