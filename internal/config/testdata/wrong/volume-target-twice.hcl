session "worker" {
  target = "rtx-2060"

  volume {
    source = "/data"
    target = "/data"
  }
  volume {
    source = "/scratch"
    target = "/scratch"
  }
  volume {
    source = "/other"
    target = "/data/"
  }
}
