session "worker" {
  target = "rtx-2060"
  env    = { A = upper(), B = max("x", 1) }
}
