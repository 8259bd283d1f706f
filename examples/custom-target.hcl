# A GPU that is not in the catalog: an RTX 3090 with less memory and a lower power limit.

target "lab-card" {
  base    = "rtx-3090"
  vram    = "20GiB"
  power_w = 300
}

host "lab" {
  simulate = "1 x h200"
}

session "reference" {
  target = "lab-card"

  lifecycle {
    prevent_destroy = true # its results are cited, so plan refuses to replace it
  }
}
