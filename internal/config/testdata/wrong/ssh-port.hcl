session "worker" {
  target = "rtx-2060"

  ssh {
    port = 65536
  }
}
