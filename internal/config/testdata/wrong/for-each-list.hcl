session "a" {
  target = "2060"
  for_each = ["a", "b"]
  env      = { NAME = each.key }
}
