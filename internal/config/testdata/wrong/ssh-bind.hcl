session "worker" {
  target = "rtx-2060"

  ssh {
    bind = "localhost"
  }
}
