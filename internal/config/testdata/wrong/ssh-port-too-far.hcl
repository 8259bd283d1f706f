session "worker" {
  count  = 7
  target = "rtx-2060"

  ssh {
    port = 65534 + count.index
  }
}
