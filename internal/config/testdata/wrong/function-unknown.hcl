session "worker" {
  target = "rtx-2060"
  env    = { NAME = uper("a") }
}
session "d" {
  target = "2060"
  env    = { AT = timestamp() }
}
