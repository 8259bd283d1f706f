session "a" {
  target = "2060"
  for_each = 3
}

session "b" {
  target   = "2060"
  for_each = "b"
}

session "c" {
  target   = "2060"
  for_each = toset([1, 2])
}
