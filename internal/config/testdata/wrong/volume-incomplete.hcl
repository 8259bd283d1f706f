session "worker" {
  target = "rtx-2060"

  volume {
    source = "/data"
  }
  volume {
    target = "/data"
  }
  volume {
  }
}
