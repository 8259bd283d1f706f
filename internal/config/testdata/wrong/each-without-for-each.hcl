session "a" {
  target = "2060"
  env = { NAME = each.key, SEED = each.value }
}
