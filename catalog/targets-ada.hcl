# Targets, GPUs that a session can present: Ada Lovelace, 2022.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "rtx-4060" {
  name    = "NVIDIA GeForce RTX 4060"
  aliases = ["4060"]

  compute_capability = "8.9"
  sms                = 24
  boost_mhz          = 2460
  l2_mib             = 24
  memory_mib         = 8188
  bus_bits           = 128
  bandwidth_gbs      = 272
  power_w            = 115
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 15.11
  tensor_fp16_tflops = 30.2
  tensor_bf16_tflops = 30.2
  tensor_fp8_tflops  = 60.4
  tensor_int8_tops   = 121
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4060-ti" {
  name    = "NVIDIA GeForce RTX 4060 Ti"
  aliases = ["4060-ti", "4060-ti-8gb"]

  compute_capability = "8.9"
  sms                = 34
  boost_mhz          = 2535
  l2_mib             = 32
  memory_mib         = 8188
  bus_bits           = 128
  bandwidth_gbs      = 288
  power_w            = 160
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 22.06
  tensor_fp16_tflops = 44.1
  tensor_bf16_tflops = 44.1
  tensor_fp8_tflops  = 88.2
  tensor_int8_tops   = 177
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4060-ti-16gb" {
  name    = "NVIDIA GeForce RTX 4060 Ti"
  aliases = ["4060-ti-16gb"]

  compute_capability = "8.9"
  sms                = 34
  boost_mhz          = 2535
  l2_mib             = 32
  memory_mib         = 16380
  bus_bits           = 128
  bandwidth_gbs      = 288
  power_w            = 165
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 22.06
  tensor_fp16_tflops = 44.1
  tensor_bf16_tflops = 44.1
  tensor_fp8_tflops  = 88.2
  tensor_int8_tops   = 177
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4070" {
  name    = "NVIDIA GeForce RTX 4070"
  aliases = ["4070"]

  compute_capability = "8.9"
  sms                = 46
  boost_mhz          = 2475
  l2_mib             = 36
  memory_mib         = 12282
  bus_bits           = 192
  bandwidth_gbs      = 504
  power_w            = 200
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 29.15
  tensor_fp16_tflops = 58.3
  tensor_bf16_tflops = 58.3
  tensor_fp8_tflops  = 116.6
  tensor_int8_tops   = 233
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4070-super" {
  name    = "NVIDIA GeForce RTX 4070 SUPER"
  aliases = ["4070-super"]

  compute_capability = "8.9"
  sms                = 56
  boost_mhz          = 2475
  l2_mib             = 48
  memory_mib         = 12282
  bus_bits           = 192
  bandwidth_gbs      = 504
  power_w            = 220
  pcie_generation    = 4
  year               = 2024

  fp32_tflops        = 35.48
  tensor_fp16_tflops = 71
  tensor_bf16_tflops = 71
  tensor_fp8_tflops  = 142
  tensor_int8_tops   = 284
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4070-ti" {
  name    = "NVIDIA GeForce RTX 4070 Ti"
  aliases = ["4070-ti"]

  compute_capability = "8.9"
  sms                = 60
  boost_mhz          = 2610
  l2_mib             = 48
  memory_mib         = 12282
  bus_bits           = 192
  bandwidth_gbs      = 504
  power_w            = 285
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 40.09
  tensor_fp16_tflops = 80.2
  tensor_bf16_tflops = 80.2
  tensor_fp8_tflops  = 160.4
  tensor_int8_tops   = 321
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4070-ti-super" {
  name    = "NVIDIA GeForce RTX 4070 Ti SUPER"
  aliases = ["4070-ti-super"]

  compute_capability = "8.9"
  sms                = 66
  boost_mhz          = 2610
  l2_mib             = 48
  memory_mib         = 16376
  bus_bits           = 256
  bandwidth_gbs      = 672
  power_w            = 285
  pcie_generation    = 4
  year               = 2024

  fp32_tflops        = 44.1
  tensor_fp16_tflops = 88.2
  tensor_bf16_tflops = 88.2
  tensor_fp8_tflops  = 176.4
  tensor_int8_tops   = 353
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4080" {
  name    = "NVIDIA GeForce RTX 4080"
  aliases = ["4080"]

  compute_capability = "8.9"
  sms                = 76
  boost_mhz          = 2505
  l2_mib             = 64
  memory_mib         = 16376
  bus_bits           = 256
  bandwidth_gbs      = 716.8
  power_w            = 320
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 48.74
  tensor_fp16_tflops = 97.5
  tensor_bf16_tflops = 97.5
  tensor_fp8_tflops  = 195
  tensor_int8_tops   = 390
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4080-super" {
  name    = "NVIDIA GeForce RTX 4080 SUPER"
  aliases = ["4080-super"]

  compute_capability = "8.9"
  sms                = 80
  boost_mhz          = 2550
  l2_mib             = 64
  memory_mib         = 16376
  bus_bits           = 256
  bandwidth_gbs      = 736
  power_w            = 320
  pcie_generation    = 4
  year               = 2024

  fp32_tflops        = 52.22
  tensor_fp16_tflops = 104.4
  tensor_bf16_tflops = 104.4
  tensor_fp8_tflops  = 208.8
  tensor_int8_tops   = 418
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4090-d" {
  name    = "NVIDIA GeForce RTX 4090 D"
  aliases = ["4090-d"]

  compute_capability = "8.9"
  sms                = 114
  boost_mhz          = 2520
  l2_mib             = 72
  memory_mib         = 24564
  bus_bits           = 384
  bandwidth_gbs      = 1008
  power_w            = 425
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 73.54
  tensor_fp16_tflops = 147.1
  tensor_bf16_tflops = 147.1
  tensor_fp8_tflops  = 294.2
  tensor_int8_tops   = 588
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-4090" {
  name    = "NVIDIA GeForce RTX 4090"
  aliases = ["4090"]

  compute_capability = "8.9"
  sms                = 128
  boost_mhz          = 2520
  l2_mib             = 72
  memory_mib         = 24564
  bus_bits           = 384
  bandwidth_gbs      = 1008
  power_w            = 450
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 82.58
  tensor_fp16_tflops = 165.2
  tensor_bf16_tflops = 165.2
  tensor_fp8_tflops  = 330.4
  tensor_int8_tops   = 660.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the whitepaper has 330.3 TFLOPS of FP8 accumulating in FP32, 660.6 in FP16"
}

target "rtx-2000-ada" {
  name    = "NVIDIA RTX 2000 Ada Generation"
  aliases = ["2000-ada"]

  compute_capability = "8.9"
  sms                = 22
  boost_mhz          = 2130
  l2_mib             = 12
  memory_mib         = 16380
  bus_bits           = 128
  bandwidth_gbs      = 224
  power_w            = 70
  pcie_generation    = 4
  year               = 2024

  fp32_tflops        = 12
  tensor_fp16_tflops = 48
  tensor_bf16_tflops = 48
  tensor_fp8_tflops  = 96
  tensor_int8_tops   = 96
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-4000-ada" {
  name    = "NVIDIA RTX 4000 Ada Generation"
  aliases = ["4000-ada"]

  compute_capability = "8.9"
  sms                = 48
  boost_mhz          = 2175
  l2_mib             = 48
  memory_mib         = 20475
  bus_bits           = 160
  bandwidth_gbs      = 360
  power_w            = 130
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 26.7
  tensor_fp16_tflops = 106.9
  tensor_bf16_tflops = 106.9
  tensor_fp8_tflops  = 213.8
  tensor_int8_tops   = 213.8
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-4000-sff-ada" {
  name    = "NVIDIA RTX 4000 SFF Ada Generation"
  aliases = ["4000-sff-ada"]

  compute_capability = "8.9"
  sms                = 48
  boost_mhz          = 1560
  l2_mib             = 48
  memory_mib         = 20475
  bus_bits           = 160
  bandwidth_gbs      = 280
  power_w            = 70
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 19.2
  tensor_fp16_tflops = 76.7
  tensor_bf16_tflops = 76.7
  tensor_fp8_tflops  = 153.4
  tensor_int8_tops   = 153.4
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-4500-ada" {
  name    = "NVIDIA RTX 4500 Ada Generation"
  aliases = ["4500-ada"]

  compute_capability = "8.9"
  sms                = 60
  boost_mhz          = 2580
  l2_mib             = 48
  memory_mib         = 24570
  bus_bits           = 192
  bandwidth_gbs      = 432
  power_w            = 210
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 39.6
  tensor_fp16_tflops = 158.5
  tensor_bf16_tflops = 158.5
  tensor_fp8_tflops  = 317
  tensor_int8_tops   = 317
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-5000-ada" {
  name    = "NVIDIA RTX 5000 Ada Generation"
  aliases = ["5000-ada"]

  compute_capability = "8.9"
  sms                = 100
  boost_mhz          = 2550
  l2_mib             = 64
  memory_mib         = 32760
  bus_bits           = 256
  bandwidth_gbs      = 576
  power_w            = 250
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 65.3
  tensor_fp16_tflops = 261.1
  tensor_bf16_tflops = 261.1
  tensor_fp8_tflops  = 522.2
  tensor_int8_tops   = 522.2
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-6000-ada" {
  name    = "NVIDIA RTX 6000 Ada Generation"
  aliases = ["6000-ada"]

  compute_capability = "8.9"
  sms                = 142
  boost_mhz          = 2505
  l2_mib             = 96
  memory_mib         = 49140
  bus_bits           = 384
  bandwidth_gbs      = 960
  power_w            = 300
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 91.1
  tensor_fp16_tflops = 364.2
  tensor_bf16_tflops = 364.2
  tensor_fp8_tflops  = 728.5
  tensor_int8_tops   = 728.5
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "l4" {
  name = "NVIDIA L4"

  compute_capability = "8.9"
  sms                = 58
  boost_mhz          = 2040
  l2_mib             = 48
  memory_mib         = 23034
  bus_bits           = 192
  bandwidth_gbs      = 300
  power_w            = 72
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 30.3
  tensor_fp16_tflops = 121
  tensor_bf16_tflops = 121
  tensor_fp8_tflops  = 242.5
  tensor_int8_tops   = 242.5
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "the datasheet prints the sparse tensor rate, 242"
}

target "l20" {
  name = "NVIDIA L20"

  compute_capability = "8.9"
  sms                = 92
  boost_mhz          = 2520
  l2_mib             = 96
  memory_mib         = 46068
  bus_bits           = 384
  bandwidth_gbs      = 864
  power_w            = 275
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 59.8
  tensor_fp16_tflops = 119.5
  tensor_bf16_tflops = 119.5
  tensor_fp8_tflops  = 239
  tensor_int8_tops   = 239
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "tensor cores run at half rate, 119.5 dense"
}

target "l40" {
  name = "NVIDIA L40"

  compute_capability = "8.9"
  sms                = 142
  boost_mhz          = 2490
  l2_mib             = 96
  memory_mib         = 46068
  bus_bits           = 384
  bandwidth_gbs      = 864
  power_w            = 300
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 90.5
  tensor_fp16_tflops = 181.05
  tensor_bf16_tflops = 181.05
  tensor_fp8_tflops  = 362
  tensor_int8_tops   = 362
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "tensor cores run at half rate when accumulating in FP32: 181.05 dense, 362.1 sparse in the datasheet"
}

target "l40s" {
  name = "NVIDIA L40S"

  compute_capability = "8.9"
  sms                = 142
  boost_mhz          = 2520
  l2_mib             = 96
  memory_mib         = 46068
  bus_bits           = 384
  bandwidth_gbs      = 864
  power_w            = 350
  pcie_generation    = 4
  year               = 2023

  fp32_tflops        = 91.6
  tensor_fp16_tflops = 362.05
  tensor_bf16_tflops = 362.05
  tensor_fp8_tflops  = 733
  tensor_int8_tops   = 733
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "the tensor rate is the printed 362.05, SMs x boost would give 366.4"
}
