session "worker" {
  target = "rtx-2060"

  ssh {
    port = 2200
  }
  ssh {
    enabled = false
  }
}
