session "worker" {
  target = "rtx-2060"

  limits {
    memory   = "5MiB"
    shm_size = "2000TiB"
    cpus     = 0
    pids     = 0
  }
}
