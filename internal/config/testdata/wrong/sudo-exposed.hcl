session "worker" {
  target = "rtx-2060"
  sudo   = true

  ssh {
    bind = "0.0.0.0"
  }
}
