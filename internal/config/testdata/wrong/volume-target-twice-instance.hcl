session "worker" {
  count  = 3
  target = "rtx-2060"

  volume {
    source = "/data"
    target = "/data/${count.index}"
  }
  volume {
    source = "/other"
    target = "/data/1"
  }
}
