# Hosts, GPUs that cosplay can use: Pascal, 2016.
# The values serve work without the hardware, and values that NVML does not report. Before Volta, NVML cannot lock the SM
# clock, so each has the one clock that it runs at under load. power_w: the lowest, default and highest limit; fp32_per_sm
# and tensor_per_sm: FLOP per clock and SM.

host "p100" {
  name    = "Tesla P100-PCIE-16GB"
  aliases = ["p100-pcie", "p100-pcie-16gb"]

  compute_capability = "6.0"
  sms                = 56
  fp32_per_sm        = 128
  tensor_per_sm      = 0
  l2_mib             = 4
  memory_mib         = 16280
  bandwidth_gbs      = 732
  clocks_mhz         = { min = 1303, max = 1303, step = 1 }
  power_w            = { min = 125, default = 250, max = 250 }

  source = "NVIDIA datasheet, from memory"
  unsure = "memory_mib: newer drivers show 16384 MiB"
}

host "p100-sxm2" {
  name    = "Tesla P100-SXM2-16GB"
  aliases = ["p100-sxm2-16gb"]

  compute_capability = "6.0"
  sms                = 56
  fp32_per_sm        = 128
  tensor_per_sm      = 0
  l2_mib             = 4
  memory_mib         = 16280
  bandwidth_gbs      = 732
  clocks_mhz         = { min = 1480, max = 1480, step = 1 }
  power_w            = { min = 150, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory"
  unsure = "memory_mib: newer drivers show 16384 MiB"
}
