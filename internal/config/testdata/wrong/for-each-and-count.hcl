session "a" {
  target = "2060"
  count    = 2
  for_each = { a = 1 }
}
