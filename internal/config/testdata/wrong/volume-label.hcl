session "worker" {
  target = "rtx-2060"

  volume "data" {
    source = "/data"
    target = "/data"
  }
}
