# Targets, GPUs that a session can present: Ampere, 2020.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "a30" {
  name = "NVIDIA A30"

  compute_capability = "8.0"
  sms                = 56
  boost_mhz          = 1440
  l2_mib             = 24
  memory_mib         = 24576
  bus_bits           = 3072
  bandwidth_gbs      = 933
  power_w            = 165
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 10.3
  tensor_fp16_tflops = 165
  tensor_bf16_tflops = 165
  tensor_int8_tops   = 330
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
}

target "a100-40gb" {
  name    = "NVIDIA A100-SXM4-40GB"
  aliases = ["a100", "a100-sxm4-40gb", "a100-sxm-40gb"]

  compute_capability = "8.0"
  sms                = 108
  boost_mhz          = 1410
  l2_mib             = 40
  memory_mib         = 40960
  bus_bits           = 5120
  bandwidth_gbs      = 1555
  power_w            = 400
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 19.5
  tensor_fp16_tflops = 312
  tensor_bf16_tflops = 312
  tensor_int8_tops   = 624
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
}

target "a100-pcie-40gb" {
  name    = "NVIDIA A100-PCIE-40GB"
  aliases = ["a100-pcie"]

  compute_capability = "8.0"
  sms                = 108
  boost_mhz          = 1410
  l2_mib             = 40
  memory_mib         = 40960
  bus_bits           = 5120
  bandwidth_gbs      = 1555
  power_w            = 250
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 19.5
  tensor_fp16_tflops = 312
  tensor_bf16_tflops = 312
  tensor_int8_tops   = 624
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
}

target "a100-80gb" {
  name    = "NVIDIA A100-SXM4-80GB"
  aliases = ["a100-sxm4-80gb", "a100-sxm-80gb"]

  compute_capability = "8.0"
  sms                = 108
  boost_mhz          = 1410
  l2_mib             = 40
  memory_mib         = 81920
  bus_bits           = 5120
  bandwidth_gbs      = 2039
  power_w            = 400
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 19.5
  tensor_fp16_tflops = 312
  tensor_bf16_tflops = 312
  tensor_int8_tops   = 624
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
}

target "a100-pcie-80gb" {
  name    = "NVIDIA A100 80GB PCIe"
  aliases = ["a100-80gb-pcie"]

  compute_capability = "8.0"
  sms                = 108
  boost_mhz          = 1410
  l2_mib             = 40
  memory_mib         = 81920
  bus_bits           = 5120
  bandwidth_gbs      = 1935
  power_w            = 300
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 19.5
  tensor_fp16_tflops = 312
  tensor_bf16_tflops = 312
  tensor_int8_tops   = 624
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
}

target "a800" {
  name    = "NVIDIA A800-SXM4-80GB"
  aliases = ["a800-80gb", "a800-sxm4-80gb"]

  compute_capability = "8.0"
  sms                = 108
  boost_mhz          = 1410
  l2_mib             = 40
  memory_mib         = 81920
  bus_bits           = 5120
  bandwidth_gbs      = 2039
  power_w            = 400
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 19.5
  tensor_fp16_tflops = 312
  tensor_bf16_tflops = 312
  tensor_int8_tops   = 624
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "an A100 whose NVLink is cut to 400 GB/s"
}

target "rtx-3050-6gb" {
  name    = "NVIDIA GeForce RTX 3050 6GB"
  aliases = ["3050-6gb"]

  compute_capability = "8.6"
  sms                = 18
  boost_mhz          = 1470
  l2_mib             = 1.5
  memory_mib         = 6144
  bus_bits           = 96
  bandwidth_gbs      = 168
  power_w            = 70
  pcie_generation    = 4
  year               = 2024

  fp32_tflops        = 6.77
  tensor_fp16_tflops = 13.5
  tensor_bf16_tflops = 13.5
  tensor_int8_tops   = 54
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3050" {
  name    = "NVIDIA GeForce RTX 3050"
  aliases = ["3050", "3050-8gb"]

  compute_capability = "8.6"
  sms                = 20
  boost_mhz          = 1777
  l2_mib             = 2
  memory_mib         = 8192
  bus_bits           = 128
  bandwidth_gbs      = 224
  power_w            = 130
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 9.1
  tensor_fp16_tflops = 18.2
  tensor_bf16_tflops = 18.2
  tensor_int8_tops   = 72.8
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3060-8gb" {
  name    = "NVIDIA GeForce RTX 3060"
  aliases = ["3060-8gb"]

  compute_capability = "8.6"
  sms                = 28
  boost_mhz          = 1777
  l2_mib             = 2
  memory_mib         = 8192
  bus_bits           = 128
  bandwidth_gbs      = 240
  power_w            = 170
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 12.74
  tensor_fp16_tflops = 25.5
  tensor_bf16_tflops = 25.5
  tensor_int8_tops   = 102
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "NVML gives it the same name as the 12 GB card"
}

target "rtx-3060" {
  name    = "NVIDIA GeForce RTX 3060"
  aliases = ["3060", "3060-12gb"]

  compute_capability = "8.6"
  sms                = 28
  boost_mhz          = 1777
  l2_mib             = 3
  memory_mib         = 12288
  bus_bits           = 192
  bandwidth_gbs      = 360
  power_w            = 170
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 12.74
  tensor_fp16_tflops = 25.5
  tensor_bf16_tflops = 25.5
  tensor_int8_tops   = 102
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3060-ti" {
  name    = "NVIDIA GeForce RTX 3060 Ti"
  aliases = ["3060-ti"]

  compute_capability = "8.6"
  sms                = 38
  boost_mhz          = 1665
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 200
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 16.2
  tensor_fp16_tflops = 32.4
  tensor_bf16_tflops = 32.4
  tensor_int8_tops   = 130
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the variant with GDDR6X has 608 GB/s"
}

target "rtx-3070" {
  name    = "NVIDIA GeForce RTX 3070"
  aliases = ["3070"]

  compute_capability = "8.6"
  sms                = 46
  boost_mhz          = 1725
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 220
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 20.31
  tensor_fp16_tflops = 40.6
  tensor_bf16_tflops = 40.6
  tensor_int8_tops   = 162.6
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3070-ti" {
  name    = "NVIDIA GeForce RTX 3070 Ti"
  aliases = ["3070-ti"]

  compute_capability = "8.6"
  sms                = 48
  boost_mhz          = 1770
  l2_mib             = 4
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 608
  power_w            = 290
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 21.75
  tensor_fp16_tflops = 43.5
  tensor_bf16_tflops = 43.5
  tensor_int8_tops   = 174
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3080" {
  name    = "NVIDIA GeForce RTX 3080"
  aliases = ["3080", "3080-10gb"]

  compute_capability = "8.6"
  sms                = 68
  boost_mhz          = 1710
  l2_mib             = 5
  memory_mib         = 10240
  bus_bits           = 320
  bandwidth_gbs      = 760
  power_w            = 320
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 29.77
  tensor_fp16_tflops = 59.5
  tensor_bf16_tflops = 59.5
  tensor_int8_tops   = 238
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3080-12gb" {
  name    = "NVIDIA GeForce RTX 3080"
  aliases = ["3080-12gb"]

  compute_capability = "8.6"
  sms                = 70
  boost_mhz          = 1710
  l2_mib             = 6
  memory_mib         = 12288
  bus_bits           = 384
  bandwidth_gbs      = 912
  power_w            = 350
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 30.64
  tensor_fp16_tflops = 61.3
  tensor_bf16_tflops = 61.3
  tensor_int8_tops   = 245
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3080-ti" {
  name    = "NVIDIA GeForce RTX 3080 Ti"
  aliases = ["3080-ti"]

  compute_capability = "8.6"
  sms                = 80
  boost_mhz          = 1665
  l2_mib             = 6
  memory_mib         = 12288
  bus_bits           = 384
  bandwidth_gbs      = 912
  power_w            = 350
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 34.1
  tensor_fp16_tflops = 68.2
  tensor_bf16_tflops = 68.2
  tensor_int8_tops   = 273
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-3090" {
  name    = "NVIDIA GeForce RTX 3090"
  aliases = ["3090"]

  compute_capability = "8.6"
  sms                = 82
  boost_mhz          = 1695
  l2_mib             = 6
  memory_mib         = 24576
  bus_bits           = 384
  bandwidth_gbs      = 936
  power_w            = 350
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 35.58
  tensor_fp16_tflops = 71.2
  tensor_bf16_tflops = 71.2
  tensor_int8_tops   = 284
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the whitepaper has 71 TFLOPS of tensor accumulating in FP32, 142 in FP16"
}

target "rtx-3090-ti" {
  name    = "NVIDIA GeForce RTX 3090 Ti"
  aliases = ["3090-ti"]

  compute_capability = "8.6"
  sms                = 84
  boost_mhz          = 1860
  l2_mib             = 6
  memory_mib         = 24564
  bus_bits           = 384
  bandwidth_gbs      = 1008
  power_w            = 450
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 40
  tensor_fp16_tflops = 80
  tensor_bf16_tflops = 80
  tensor_int8_tops   = 320
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-a2000" {
  name    = "NVIDIA RTX A2000"
  aliases = ["a2000", "a2000-6gb"]

  compute_capability = "8.6"
  sms                = 26
  boost_mhz          = 1200
  l2_mib             = 3
  memory_mib         = 6138
  bus_bits           = 192
  bandwidth_gbs      = 288
  power_w            = 70
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 8
  tensor_fp16_tflops = 31.9
  tensor_bf16_tflops = 31.9
  tensor_int8_tops   = 63.8
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a2000-12gb" {
  name    = "NVIDIA RTX A2000 12GB"
  aliases = ["a2000-12gb"]

  compute_capability = "8.6"
  sms                = 26
  boost_mhz          = 1200
  l2_mib             = 3
  memory_mib         = 12282
  bus_bits           = 192
  bandwidth_gbs      = 288
  power_w            = 70
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 8
  tensor_fp16_tflops = 31.9
  tensor_bf16_tflops = 31.9
  tensor_int8_tops   = 63.8
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a4000" {
  name    = "NVIDIA RTX A4000"
  aliases = ["a4000"]

  compute_capability = "8.6"
  sms                = 48
  boost_mhz          = 1560
  l2_mib             = 4
  memory_mib         = 16376
  bus_bits           = 256
  bandwidth_gbs      = 448
  power_w            = 140
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 19.2
  tensor_fp16_tflops = 76.7
  tensor_bf16_tflops = 76.7
  tensor_int8_tops   = 153.4
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a4500" {
  name    = "NVIDIA RTX A4500"
  aliases = ["a4500"]

  compute_capability = "8.6"
  sms                = 56
  boost_mhz          = 1650
  l2_mib             = 6
  memory_mib         = 20470
  bus_bits           = 320
  bandwidth_gbs      = 640
  power_w            = 200
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 23.7
  tensor_fp16_tflops = 94.6
  tensor_bf16_tflops = 94.6
  tensor_int8_tops   = 189.2
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a5000" {
  name    = "NVIDIA RTX A5000"
  aliases = ["a5000"]

  compute_capability = "8.6"
  sms                = 64
  boost_mhz          = 1695
  l2_mib             = 6
  memory_mib         = 24564
  bus_bits           = 384
  bandwidth_gbs      = 768
  power_w            = 230
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 27.8
  tensor_fp16_tflops = 111.1
  tensor_bf16_tflops = 111.1
  tensor_int8_tops   = 222.2
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a5500" {
  name    = "NVIDIA RTX A5500"
  aliases = ["a5500"]

  compute_capability = "8.6"
  sms                = 80
  boost_mhz          = 1665
  l2_mib             = 6
  memory_mib         = 24564
  bus_bits           = 384
  bandwidth_gbs      = 768
  power_w            = 230
  pcie_generation    = 4
  year               = 2022

  fp32_tflops        = 34.1
  tensor_fp16_tflops = 136.4
  tensor_bf16_tflops = 136.4
  tensor_int8_tops   = 272.8
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-a6000" {
  name    = "NVIDIA RTX A6000"
  aliases = ["a6000"]

  compute_capability = "8.6"
  sms                = 84
  boost_mhz          = 1800
  l2_mib             = 6
  memory_mib         = 49140
  bus_bits           = 384
  bandwidth_gbs      = 768
  power_w            = 300
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 38.7
  tensor_fp16_tflops = 154.8
  tensor_bf16_tflops = 154.8
  tensor_int8_tops   = 309.7
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "a40" {
  name = "NVIDIA A40"

  compute_capability = "8.6"
  sms                = 84
  boost_mhz          = 1740
  l2_mib             = 6
  memory_mib         = 46068
  bus_bits           = 384
  bandwidth_gbs      = 696
  power_w            = 300
  pcie_generation    = 4
  year               = 2020

  fp32_tflops        = 37.4
  tensor_fp16_tflops = 149.7
  tensor_bf16_tflops = 149.7
  tensor_int8_tops   = 299.3
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "old drivers show 45634 MiB"
}

target "a10" {
  name = "NVIDIA A10"

  compute_capability = "8.6"
  sms                = 72
  boost_mhz          = 1695
  l2_mib             = 6
  memory_mib         = 23028
  bus_bits           = 384
  bandwidth_gbs      = 600
  power_w            = 150
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 31.2
  tensor_fp16_tflops = 125
  tensor_bf16_tflops = 125
  tensor_int8_tops   = 250
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "a10g" {
  name = "NVIDIA A10G"

  compute_capability = "8.6"
  sms                = 80
  boost_mhz          = 1710
  l2_mib             = 6
  memory_mib         = 23028
  bus_bits           = 384
  bandwidth_gbs      = 600
  power_w            = 300
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 35.02
  tensor_fp16_tflops = 70
  tensor_bf16_tflops = 70
  tensor_int8_tops   = 140
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "made for AWS; NVIDIA's datasheet has 35 TFLOPS, 70 of tensor"
}

target "a2" {
  name = "NVIDIA A2"

  compute_capability = "8.6"
  sms                = 10
  boost_mhz          = 1770
  l2_mib             = 2
  memory_mib         = 15356
  bus_bits           = 128
  bandwidth_gbs      = 200
  power_w            = 60
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 4.5
  tensor_fp16_tflops = 18
  tensor_bf16_tflops = 18
  tensor_int8_tops   = 36
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
}

target "a16" {
  name = "NVIDIA A16"

  compute_capability = "8.6"
  sms                = 10
  boost_mhz          = 1755
  l2_mib             = 2
  memory_mib         = 15356
  bus_bits           = 128
  bandwidth_gbs      = 200
  power_w            = 62
  pcie_generation    = 4
  year               = 2021

  fp32_tflops        = 4.5
  tensor_fp16_tflops = 17.9
  tensor_bf16_tflops = 17.9
  tensor_int8_tops   = 35.9
  tensor_types       = ["fp16", "bf16", "tf32", "int8", "int4"]

  source = "NVIDIA datasheet, from memory"
  note   = "one of the 4 GPUs of a 250 W board"
}
