session "worker" {
  target = "rtx-2060"

  limits {
    memory   = "64KiB"
    shm_size = "0.3GiB"
  }
}
