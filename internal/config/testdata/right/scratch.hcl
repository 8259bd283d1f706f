variable "base" {
  type    = string
  default = null
}

target "lab-card" {
  base               = var.base
  name               = "NVIDIA Lab Card"
  vram               = "20GiB"
  compute_capability = "8.6"
  sms                = 72
  boost_mhz          = 1500
  bandwidth_gbs      = 760
  bus_bits           = 320
  l2_mib             = 5
  power_w            = 300
  pcie_generation    = 4
}

target "plain-card" {
  name               = "NVIDIA Plain Card"
  vram               = "8GiB"
  compute_capability = 8.0
  sms                = 20
  boost_mhz          = 1000
  bandwidth_gbs      = 400
  bus_bits           = 256
  l2_mib             = 4
  power_w            = 100
  pcie_generation    = 3
  fp32_tflops        = 3
  tensor_fp16_tflops = 0
}

target "slow-card" {
  name               = "NVIDIA Slow Card"
  vram               = "8GiB"
  compute_capability = "8.9"
  sms                = 20
  boost_mhz          = 1000
  bandwidth_gbs      = 400
  bus_bits           = 256
  l2_mib             = 4
  power_w            = 100
  pcie_generation    = 3
  tensor_fp16_tflops = 10
  tensor_fp8_tflops  = 0
}

session "worker" {
  for_each = toset(["lab-card", "plain-card", "slow-card"])
  target   = each.value
  env = {
    TYPES = join(",", cosplay.catalog[each.value].tensor_types)
    RATES = jsonencode([for rate in ["fp32_tflops", "tensor_fp16_tflops", "tensor_bf16_tflops", "tensor_fp8_tflops", "tensor_int8_tops", "architecture", "year"] : cosplay.catalog[each.value][rate]])
  }
}
