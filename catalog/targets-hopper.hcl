# Targets, GPUs that a session can present: Hopper, 2022.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "h100-pcie" {
  name    = "NVIDIA H100 PCIe"
  aliases = ["h100p", "h100-pcie-80gb"]

  compute_capability = "9.0"
  sms                = 114
  boost_mhz          = 1755
  l2_mib             = 50
  memory_mib         = 81559
  bus_bits           = 5120
  bandwidth_gbs      = 2039
  power_w            = 350
  pcie_generation    = 5
  year               = 2022

  fp32_tflops        = 51.2
  tensor_fp16_tflops = 756
  tensor_bf16_tflops = 756
  tensor_fp8_tflops  = 1513
  tensor_int8_tops   = 1513
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "the tensor rates are quoted at 1620 MHz"
}

target "h100" {
  name    = "NVIDIA H100 80GB HBM3"
  aliases = ["h100-sxm", "h100-sxm5", "h100-80gb", "h100-sxm-80gb"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1980
  l2_mib             = 50
  memory_mib         = 81559
  bus_bits           = 5120
  bandwidth_gbs      = 3352
  power_w            = 700
  pcie_generation    = 5
  year               = 2022

  fp32_tflops        = 66.9
  tensor_fp16_tflops = 989.4
  tensor_bf16_tflops = 989.4
  tensor_fp8_tflops  = 1979
  tensor_int8_tops   = 1979
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "the tensor rates are quoted at 1830 MHz"
}

target "h100-nvl" {
  name    = "NVIDIA H100 NVL"
  aliases = ["h100-94gb", "h100-nvl-94gb"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1785
  l2_mib             = 50
  memory_mib         = 95830
  bus_bits           = 6144
  bandwidth_gbs      = 3938
  power_w            = 400
  pcie_generation    = 5
  year               = 2023

  fp32_tflops        = 60
  tensor_fp16_tflops = 835.5
  tensor_bf16_tflops = 835.5
  tensor_fp8_tflops  = 1671
  tensor_int8_tops   = 1671
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "from the newer datasheet, an older one printed 67 and 990; the tensor rates are quoted at about 1545 MHz"
}

target "h800" {
  name    = "NVIDIA H800"
  aliases = ["h800-sxm"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1980
  l2_mib             = 50
  memory_mib         = 81559
  bus_bits           = 5120
  bandwidth_gbs      = 3352
  power_w            = 700
  pcie_generation    = 5
  year               = 2023

  fp32_tflops        = 66.9
  tensor_fp16_tflops = 989.4
  tensor_bf16_tflops = 989.4
  tensor_fp8_tflops  = 1979
  tensor_int8_tops   = 1979
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "an H100 whose NVLink is cut to 400 GB/s and FP64 to about 1 TFLOPS; the tensor rates are quoted at 1830 MHz"
}

target "h20" {
  name = "NVIDIA H20"

  compute_capability = "9.0"
  sms                = 78
  boost_mhz          = 1980
  l2_mib             = 60
  memory_mib         = 97871
  bus_bits           = 6144
  bandwidth_gbs      = 4022
  power_w            = 500
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 44
  tensor_fp16_tflops = 148
  tensor_bf16_tflops = 148
  tensor_fp8_tflops  = 296
  tensor_int8_tops   = 296
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "tensor rates are capped; 78 SMs come from a third party; SMs x boost would give 39.5 TFLOPS, not the printed 44"
}

target "h200" {
  name    = "NVIDIA H200"
  aliases = ["h200-sxm", "h200-141gb", "h200-sxm-141gb"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1980
  l2_mib             = 50
  memory_mib         = 143771
  bus_bits           = 6144
  bandwidth_gbs      = 4800
  power_w            = 700
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 66.9
  tensor_fp16_tflops = 989.4
  tensor_bf16_tflops = 989.4
  tensor_fp8_tflops  = 1979
  tensor_int8_tops   = 1979
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "memory clock x bus would give 4917 GB/s, 3201 MHz by 6144 bit; the tensor rates are quoted at 1830 MHz"
}

target "h200-nvl" {
  name = "NVIDIA H200 NVL"

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1785
  l2_mib             = 50
  memory_mib         = 143771
  bus_bits           = 6144
  bandwidth_gbs      = 4800
  power_w            = 600
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 60
  tensor_fp16_tflops = 835.5
  tensor_bf16_tflops = 835.5
  tensor_fp8_tflops  = 1671
  tensor_int8_tops   = 1671
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "the tensor rates are quoted at about 1545 MHz"
}

target "gh200" {
  name    = "NVIDIA GH200 480GB"
  aliases = ["gh200-96gb", "gh200-480gb"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1980
  l2_mib             = 50
  memory_mib         = 97871
  bus_bits           = 6144
  bandwidth_gbs      = 4022
  power_w            = 900
  pcie_generation    = 5
  year               = 2023

  fp32_tflops        = 66.9
  tensor_fp16_tflops = 989.4
  tensor_bf16_tflops = 989.4
  tensor_fp8_tflops  = 1979
  tensor_int8_tops   = 1979
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "the module takes 450 to 1000 W, the power here is the limit that NVML shows for the GPU; the tensor rates are quoted at 1830 MHz"
}

target "gh200-144gb" {
  name    = "NVIDIA GH200 144G HBM3e"
  aliases = ["gh200-144"]

  compute_capability = "9.0"
  sms                = 132
  boost_mhz          = 1980
  l2_mib             = 50
  memory_mib         = 146831
  bus_bits           = 6144
  bandwidth_gbs      = 4900
  power_w            = 900
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 66.9
  tensor_fp16_tflops = 989.4
  tensor_bf16_tflops = 989.4
  tensor_fp8_tflops  = 1979
  tensor_int8_tops   = 1979
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "the tensor rates are quoted at 1830 MHz"
}
