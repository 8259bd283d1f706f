session "worker" {
  target = "rtx-2060"

  limits {
    memory   = "32GB"
    shm_size = "8g"
  }
}
