session "a" {
  target = "2060"
  for_each = { a = 1 }
  env      = { NAME = each.name, N = count.index }
}
