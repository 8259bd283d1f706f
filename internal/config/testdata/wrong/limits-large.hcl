session "worker" {
  target = "rtx-2060"

  limits {
    cpus = 1000000
    pids = 5000000
  }
}
