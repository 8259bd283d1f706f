session "a" {
  target = "2060"
  for_each = toset([each.key])
}
