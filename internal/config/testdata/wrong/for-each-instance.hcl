session "a" {
  target = "2060"
  for_each = { a = "2060", b = "2600" }
  env      = { X = each.value.seed }
}

session "b" {
  for_each = { a = "2060", b = "2600" }
  target   = each.value
}
