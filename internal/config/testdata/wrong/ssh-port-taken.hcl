session "alice" {
  target = "rtx-2060"

  ssh {
    port = 2203
  }
}

session "worker" {
  count  = 7
  target = "rtx-2060"

  ssh {
    port = 2200 + count.index
  }
}
