session "worker" {
  target = "rtx-2060"
  env    = { NAME = uper("a") }
}
session "d" {
  target = "2060"
  env    = { AT = timestamp() }
}

locals {
  kind   = type("a")
  old    = list("a", "b")
  filled = templatestring("$${name}", { name = "a" })
}
