target "lab-card" {
  base    = "rtx-3099"
  vram    = "20GB"
  sms     = 1.5
  power_w = 0
  name    = "Höhe"
}

target "small" {
  vram = "4GiB"
}

target "2060" {
  base = "3090"
}

target "other" {
  base   = "3090"
  colour = "green"
  l2_mib = "much"
}
