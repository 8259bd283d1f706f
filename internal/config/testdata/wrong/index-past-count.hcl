locals {
  names = ["a", "b"]
}

session "worker" {
  count  = 3
  target = "2060"
  env    = { NAME = local.names[count.index] }
}
