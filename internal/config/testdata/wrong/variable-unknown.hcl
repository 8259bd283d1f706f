session "worker" {
  target = "rtx-2060"
  env    = { SEED = counter.index }
}
