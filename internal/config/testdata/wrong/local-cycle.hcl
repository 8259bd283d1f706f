locals {
  a = local.b + 1
  b = "${local.c}"
  c = [for x in [1] : local.a]
}

session "a" {
  target = "2060"
  env = { A = local.a }
}
