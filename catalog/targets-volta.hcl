# Targets, GPUs that a session can present: Volta, 2017.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "titan-v" {
  name = "NVIDIA TITAN V"

  compute_capability = "7.0"
  sms                = 80
  boost_mhz          = 1455
  l2_mib             = 4.5
  memory_mib         = 12288
  bus_bits           = 3072
  bandwidth_gbs      = 653
  power_w            = 250
  pcie_generation    = 3
  year               = 2017

  fp32_tflops        = 14.9
  tensor_fp16_tflops = 119.2
  tensor_types       = ["fp16"]

  source = "NVIDIA datasheet, from memory"
  note   = "the datasheet quotes 110 TFLOPS of tensor"
}

target "v100-pcie" {
  name    = "Tesla V100-PCIE-16GB"
  aliases = ["v100-pcie-16gb"]

  compute_capability = "7.0"
  sms                = 80
  boost_mhz          = 1380
  l2_mib             = 6
  memory_mib         = 16384
  bus_bits           = 4096
  bandwidth_gbs      = 900
  power_w            = 250
  pcie_generation    = 3
  year               = 2017

  fp32_tflops        = 14
  tensor_fp16_tflops = 112
  tensor_types       = ["fp16"]

  source = "NVIDIA datasheet, from memory"
}

target "v100-16gb" {
  name    = "Tesla V100-SXM2-16GB"
  aliases = ["v100", "v100-sxm2", "v100-sxm2-16gb"]

  compute_capability = "7.0"
  sms                = 80
  boost_mhz          = 1530
  l2_mib             = 6
  memory_mib         = 16384
  bus_bits           = 4096
  bandwidth_gbs      = 900
  power_w            = 300
  pcie_generation    = 3
  year               = 2017

  fp32_tflops        = 15.7
  tensor_fp16_tflops = 125
  tensor_types       = ["fp16"]

  source = "NVIDIA datasheet, from memory"
}

target "v100-32gb" {
  name    = "Tesla V100-SXM2-32GB"
  aliases = ["v100-sxm2-32gb"]

  compute_capability = "7.0"
  sms                = 80
  boost_mhz          = 1530
  l2_mib             = 6
  memory_mib         = 32768
  bus_bits           = 4096
  bandwidth_gbs      = 900
  power_w            = 300
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 15.7
  tensor_fp16_tflops = 125
  tensor_types       = ["fp16"]

  source = "NVIDIA datasheet, from memory"
}
