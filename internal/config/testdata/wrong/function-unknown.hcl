session "worker" {
  target = "rtx-2060"
  env    = { NAME = uper("a") }
}
