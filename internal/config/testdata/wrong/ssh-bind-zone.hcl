session "worker" {
  target = "rtx-2060"

  ssh {
    bind = "fe80::1%eth0"
  }
}
