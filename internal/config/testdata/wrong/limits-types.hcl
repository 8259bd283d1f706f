session "worker" {
  target = "rtx-2060"

  limits {
    memory = ["32GiB"]
    cpus   = "many"
    pids   = 10.5
  }
}
