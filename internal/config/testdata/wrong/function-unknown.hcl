session "worker" {
  target = "rtx-2060"
  env    = { NAME = uper("a") }
}
session "d" {
  target = "2060"
  env    = { AT = timestamp() }
}

locals {
  later  = timecmp("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
  old    = list("a", "b")
  filled = templatestring("$${name}", { name = "a" })
}
