# GPUs that are not in the catalog: an RTX 3090 with less memory and a lower power limit, and one that the block
# describes as a whole. cosplay computes its rates from SMs, clock and compute capability.

target "lab-card" {
  base    = "rtx-3090"
  vram    = "20GiB"
  power_w = 300
}

target "new-card" {
  name               = "NVIDIA New Card"
  vram               = "12GiB"
  compute_capability = "8.9"
  sms                = 32
  boost_mhz          = 1400
  bandwidth_gbs      = 500
  bus_bits           = 256
  l2_mib             = 24
  power_w            = 150
  pcie_generation    = 4
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

session "candidate" {
  target = "new-card"
}
