# Targets, GPUs that a session can present: Turing, 2018.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "gtx-1650" {
  name    = "NVIDIA GeForce GTX 1650"
  aliases = ["1650"]

  compute_capability = "7.5"
  sms                = 14
  boost_mhz          = 1665
  l2_mib             = 1
  memory_mib         = 4096
  bus_bits           = 128
  bandwidth_gbs      = 128
  power_w            = 75
  pcie_generation    = 3
  year               = 2019

  fp32_tflops = 2.98

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "this is the one with GDDR5; the GDDR6 revision has 1590 MHz and 192 GB/s"
}

target "gtx-1650-super" {
  name    = "NVIDIA GeForce GTX 1650 SUPER"
  aliases = ["1650-super"]

  compute_capability = "7.5"
  sms                = 20
  boost_mhz          = 1725
  l2_mib             = 1
  memory_mib         = 4096
  bus_bits           = 128
  bandwidth_gbs      = 192
  power_w            = 100
  pcie_generation    = 3
  year               = 2019

  fp32_tflops = 4.42

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1660" {
  name    = "NVIDIA GeForce GTX 1660"
  aliases = ["1660"]

  compute_capability = "7.5"
  sms                = 22
  boost_mhz          = 1785
  l2_mib             = 1.5
  memory_mib         = 6144
  bus_bits           = 192
  bandwidth_gbs      = 192
  power_w            = 120
  pcie_generation    = 3
  year               = 2019

  fp32_tflops = 5.03

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1660-super" {
  name    = "NVIDIA GeForce GTX 1660 SUPER"
  aliases = ["1660-super"]

  compute_capability = "7.5"
  sms                = 22
  boost_mhz          = 1785
  l2_mib             = 1.5
  memory_mib         = 6144
  bus_bits           = 192
  bandwidth_gbs      = 336
  power_w            = 125
  pcie_generation    = 3
  year               = 2019

  fp32_tflops = 5.03

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1660-ti" {
  name    = "NVIDIA GeForce GTX 1660 Ti"
  aliases = ["1660-ti"]

  compute_capability = "7.5"
  sms                = 24
  boost_mhz          = 1770
  l2_mib             = 1.5
  memory_mib         = 6144
  bus_bits           = 192
  bandwidth_gbs      = 288
  power_w            = 120
  pcie_generation    = 3
  year               = 2019

  fp32_tflops = 5.44

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-2060" {
  name    = "NVIDIA GeForce RTX 2060"
  aliases = ["2060", "2060-6gb"]

  compute_capability = "7.5"
  sms                = 30
  boost_mhz          = 1680
  l2_mib             = 3
  memory_mib         = 6144
  bus_bits           = 192
  bandwidth_gbs      = 336
  power_w            = 160
  pcie_generation    = 3
  year               = 2019

  fp32_tflops        = 6.45
  tensor_fp16_tflops = 25.8
  tensor_int8_tops   = 103
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-2060-12gb" {
  name    = "NVIDIA GeForce RTX 2060"
  aliases = ["2060-12gb"]

  compute_capability = "7.5"
  sms                = 34
  boost_mhz          = 1650
  l2_mib             = 3
  memory_mib         = 12288
  bus_bits           = 192
  bandwidth_gbs      = 336
  power_w            = 185
  pcie_generation    = 3
  year               = 2021

  fp32_tflops        = 7.18
  tensor_fp16_tflops = 28.7
  tensor_int8_tops   = 115
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "NVML gives it the same name as the 6 GB card"
}

target "rtx-2060-super" {
  name    = "NVIDIA GeForce RTX 2060 SUPER"
  aliases = ["2060-super"]

  compute_capability = "7.5"
  sms                = 34
  boost_mhz          = 1650
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 175
  pcie_generation    = 3
  year               = 2019

  fp32_tflops        = 7.18
  tensor_fp16_tflops = 28.7
  tensor_int8_tops   = 115
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-2070" {
  name    = "NVIDIA GeForce RTX 2070"
  aliases = ["2070"]

  compute_capability = "7.5"
  sms                = 36
  boost_mhz          = 1620
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 175
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 7.46
  tensor_fp16_tflops = 29.9
  tensor_int8_tops   = 119
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the Founders Edition boosts to 1710 MHz, 7.9 TFLOPS"
}

target "rtx-2070-super" {
  name    = "NVIDIA GeForce RTX 2070 SUPER"
  aliases = ["2070-super"]

  compute_capability = "7.5"
  sms                = 40
  boost_mhz          = 1770
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 215
  pcie_generation    = 3
  year               = 2019

  fp32_tflops        = 9.06
  tensor_fp16_tflops = 36.2
  tensor_int8_tops   = 145
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-2080" {
  name    = "NVIDIA GeForce RTX 2080"
  aliases = ["2080"]

  compute_capability = "7.5"
  sms                = 46
  boost_mhz          = 1710
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 215
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 10.07
  tensor_fp16_tflops = 40.3
  tensor_int8_tops   = 161
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the Founders Edition has 1800 MHz and 225 W"
}

target "rtx-2080-super" {
  name    = "NVIDIA GeForce RTX 2080 SUPER"
  aliases = ["2080-super"]

  compute_capability = "7.5"
  sms                = 48
  boost_mhz          = 1815
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 496
  power_w            = 250
  pcie_generation    = 3
  year               = 2019

  fp32_tflops        = 11.15
  tensor_fp16_tflops = 44.6
  tensor_int8_tops   = 178
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-2080-ti" {
  name    = "NVIDIA GeForce RTX 2080 Ti"
  aliases = ["2080-ti"]

  compute_capability = "7.5"
  sms                = 68
  boost_mhz          = 1545
  l2_mib             = 5.5
  memory_mib         = 11264
  bus_bits           = 352
  bandwidth_gbs      = 616
  power_w            = 250
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 13.45
  tensor_fp16_tflops = 53.8
  tensor_int8_tops   = 215
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the Founders Edition has 1635 MHz, 14.2 TFLOPS, 56.9 of tensor and 260 W"
}

target "titan-rtx" {
  name = "NVIDIA TITAN RTX"

  compute_capability = "7.5"
  sms                = 72
  boost_mhz          = 1770
  l2_mib             = 6
  memory_mib         = 24576
  bus_bits           = 384
  bandwidth_gbs      = 672
  power_w            = 280
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 16.31
  tensor_fp16_tflops = 130.5
  tensor_int8_tops   = 261
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "tensor cores accumulate in FP32 at the full rate"
}

target "quadro-rtx-5000" {
  name = "Quadro RTX 5000"

  compute_capability = "7.5"
  sms                = 48
  boost_mhz          = 1815
  l2_mib             = 4
  memory_mib         = 16384
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 230
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 11.15
  tensor_fp16_tflops = 89.2
  tensor_int8_tops   = 178
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "quadro-rtx-6000" {
  name = "Quadro RTX 6000"

  compute_capability = "7.5"
  sms                = 72
  boost_mhz          = 1770
  l2_mib             = 6
  memory_mib         = 24576
  bus_bits           = 384
  bandwidth_gbs      = 672
  power_w            = 260
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 16.31
  tensor_fp16_tflops = 130.5
  tensor_int8_tops   = 261
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "ECC lowers the memory"
}

target "quadro-rtx-8000" {
  name = "Quadro RTX 8000"

  compute_capability = "7.5"
  sms                = 72
  boost_mhz          = 1770
  l2_mib             = 6
  memory_mib         = 49152
  bus_bits           = 384
  bandwidth_gbs      = 672
  power_w            = 260
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 16.31
  tensor_fp16_tflops = 130.5
  tensor_int8_tops   = 261
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "46080 MiB with ECC on"
}

target "t4" {
  name = "Tesla T4"

  compute_capability = "7.5"
  sms                = 40
  boost_mhz          = 1590
  l2_mib             = 4
  memory_mib         = 15360
  bus_bits           = 256
  bandwidth_gbs      = 320
  power_w            = 70
  pcie_generation    = 3
  year               = 2018

  fp32_tflops        = 8.1
  tensor_fp16_tflops = 65
  tensor_int8_tops   = 130
  tensor_types       = ["fp16", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "the first datasheet says 300 GB/s; the memory is with ECC on"
}
