locals {
  big = cosplay.catalog["lab-card"].vram_mib
}

target "lab-card" {
  base    = "3090"
  power_w = cosplay.catalog["rtx-2060"].power_w
}
