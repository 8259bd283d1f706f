session "worker" {
  target = "rtx-2060"

  volume {
    source    = "/data"
    target    = "/data"
    read_only = "ro"
  }
}
