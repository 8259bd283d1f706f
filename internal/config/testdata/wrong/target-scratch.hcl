target "half" {
  name               = "NVIDIA Lab Card"
  vram               = "20GiB"
  compute_capability = "8.6"
  sms                = 72
}

target "odd" {
  name               = "NVIDIA Lab Card"
  vram               = "20GiB"
  compute_capability = 8.5
  sms                = 72
  boost_mhz          = 1500
  bandwidth_gbs      = 760
  bus_bits           = 320
  l2_mib             = 5
  power_w            = 300
  pcie_generation    = 4
}

target "nothing" {
}

target "null" {
  base = null
  vram = "20GiB"
}

target "changed" {
  base               = "3090"
  compute_capability = "9.0"
  bus_bits           = 7
}

target "misspelled" {
  bse  = "3090"
  vram = "20GiB"
}
