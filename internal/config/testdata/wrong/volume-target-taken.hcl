session "worker" {
  target = "rtx-2060"

  volume {
    source = "/data"
    target = "/workspace/"
  }
  volume {
    source = "/data"
    target = "/run/cosplay"
  }
  volume {
    source = "/data"
    target = "/run/../run/cosplay/bin"
  }
}
