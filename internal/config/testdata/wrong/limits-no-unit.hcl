session "worker" {
  target = "rtx-2060"

  limits {
    memory   = 32
    shm_size = "lots"
  }
}
