target "one" {
  base = "two"
}

target "two" {
  base    = "3090"
  power_w = target.one.power_w
}
