session "worker" {
  count  = 2
  target = "rtx-2060"
  sudo   = true

  ssh {
    bind = ["127.0.0.1", "10.0.0.7"][count.index]
  }
}
