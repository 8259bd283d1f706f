session "worker" {
  target = "rtx-2060"

  ssh {
    authorized_keys = []
  }
}
