session "worker" {
  target = "rtx-2060"

  ssh {
    port = "any"
  }
}
