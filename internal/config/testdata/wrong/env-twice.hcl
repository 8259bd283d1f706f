session "worker" {
  target = "rtx-2060"
  env = {
    SEED = 11
    SEED = 12
  }
}
