target "lab-card" {
  base = "rtx-3090"
}

session "worker" {
  target = "lab-crad"
  env    = { VRAM = target.labcard.vram_mib, TDP = target.lab-card.tdp }
}
