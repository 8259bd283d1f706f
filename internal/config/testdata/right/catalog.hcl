target "lab-card" {
  base    = "rtx-3090"
  vram    = "20GiB"
  sms     = 41
  power_w = 300
}

target "lab-card-2" {
  base        = "Lab Card"
  name        = "NVIDIA Lab Card 2"
  fp32_tflops = target.lab-card.fp32_tflops * 2
  vram        = "12GiB"
}

locals {
  small = [for key in ["2060", "3090"] : cosplay.catalog["rtx-${key}"].sms]
  vram  = { for key in ["2060", "RTX_3090", "lab_card"] : key => try(cosplay.catalog[key].vram_mib, 0) }
  known = [for key in ["2060", "no such card"] : can(cosplay.catalog[key])]
  cards = sort([for name, gpu in cosplay.catalog : name if gpu.vram_mib == 20480])
}

session "worker" {
  for_each = { a = "RTX 2060", b = "lab_card" }
  target   = each.value
  env = {
    VRAM  = cosplay.catalog["3090"].vram_mib
    MINE  = cosplay.catalog[each.value].vram_mib
    SMS   = join(",", local.small)
    RATE  = cosplay.catalog["Lab-Card-2"].fp32_tflops
    CARDS = join(",", local.cards)
    VRAMS = jsonencode(local.vram)
    KNOWN = jsonencode(local.known)
    HOME  = env("USER")
    MOTD  = chomp(file("motd.txt"))
  }
}
