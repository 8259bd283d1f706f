session "worker" {
  target = "rtx-2060"

  ssh {
    bind = "127.0.0.1:2200"
  }
}
