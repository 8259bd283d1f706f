# Targets, GPUs that a session can present: Blackwell, 2024.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "b100" {
  name = "NVIDIA B100"

  compute_capability = "10.0"
  sms                = 148
  boost_mhz          = 1830
  l2_mib             = 126
  memory_mib         = 183359
  bus_bits           = 7680
  bandwidth_gbs      = 7672
  power_w            = 700
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 60
  tensor_fp16_tflops = 1750
  tensor_bf16_tflops = 1750
  tensor_fp8_tflops  = 3500
  tensor_int8_tops   = 3500
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "hardly shipped; clock and SMs are guesses, and with them SMs x boost misses the printed FP32"
}

target "b200" {
  name = "NVIDIA B200"

  compute_capability = "10.0"
  sms                = 148
  boost_mhz          = 1965
  l2_mib             = 126
  memory_mib         = 183359
  bus_bits           = 7680
  bandwidth_gbs      = 7672
  power_w            = 1000
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 75
  tensor_fp16_tflops = 2250
  tensor_bf16_tflops = 2250
  tensor_fp8_tflops  = 4500
  tensor_int8_tops   = 4500
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "148 SMs, 1965 MHz and 7680 bit as a driver reports them; the datasheet says 8 TB/s; the tensor rates are quoted at about 1856 MHz"
}

target "gb200" {
  name = "NVIDIA GB200"

  compute_capability = "10.0"
  sms                = 152
  boost_mhz          = 2062
  l2_mib             = 126
  memory_mib         = 189471
  bus_bits           = 8192
  bandwidth_gbs      = 8000
  power_w            = 1200
  pcie_generation    = 5
  year               = 2024

  fp32_tflops        = 80
  tensor_fp16_tflops = 2500
  tensor_bf16_tflops = 2500
  tensor_fp8_tflops  = 5000
  tensor_int8_tops   = 5000
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8", "fp64"]

  source = "NVIDIA datasheet, from memory"
  note   = "some report a bus of 7680 bit; the tensor rates are quoted a little below boost"
}

target "b300" {
  name = "NVIDIA B300 SXM6 AC"

  compute_capability = "10.3"
  sms                = 148
  boost_mhz          = 2032
  l2_mib             = 126
  memory_mib         = 275040
  bus_bits           = 8192
  bandwidth_gbs      = 8000
  power_w            = 1100
  pcie_generation    = 6
  year               = 2025

  fp32_tflops        = 75
  tensor_fp16_tflops = 2250
  tensor_bf16_tflops = 2250
  tensor_fp8_tflops  = 4500
  tensor_int8_tops   = 150
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
  note   = "148 SMs are unsure, 160 is said as well; INT8 and FP64 are cut; SMs x boost gives 77 TFLOPS; the tensor rates are quoted below boost"
}

target "rtx-5050" {
  name    = "NVIDIA GeForce RTX 5050"
  aliases = ["5050"]

  compute_capability = "12.0"
  sms                = 20
  boost_mhz          = 2572
  l2_mib             = 24
  memory_mib         = 8151
  bus_bits           = 128
  bandwidth_gbs      = 320
  power_w            = 130
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 13.17
  tensor_fp16_tflops = 26.3
  tensor_bf16_tflops = 26.3
  tensor_fp8_tflops  = 52.6
  tensor_int8_tops   = 105.2
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "this is the one with GDDR6"
}

target "rtx-5060" {
  name    = "NVIDIA GeForce RTX 5060"
  aliases = ["5060"]

  compute_capability = "12.0"
  sms                = 30
  boost_mhz          = 2497
  l2_mib             = 32
  memory_mib         = 8151
  bus_bits           = 128
  bandwidth_gbs      = 448
  power_w            = 145
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 19.18
  tensor_fp16_tflops = 38.4
  tensor_bf16_tflops = 38.4
  tensor_fp8_tflops  = 76.8
  tensor_int8_tops   = 153.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5060-ti" {
  name    = "NVIDIA GeForce RTX 5060 Ti"
  aliases = ["5060-ti", "5060-ti-8gb"]

  compute_capability = "12.0"
  sms                = 36
  boost_mhz          = 2572
  l2_mib             = 32
  memory_mib         = 8151
  bus_bits           = 128
  bandwidth_gbs      = 448
  power_w            = 180
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 23.7
  tensor_fp16_tflops = 47.4
  tensor_bf16_tflops = 47.4
  tensor_fp8_tflops  = 94.8
  tensor_int8_tops   = 189.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5060-ti-16gb" {
  name    = "NVIDIA GeForce RTX 5060 Ti"
  aliases = ["5060-ti-16gb"]

  compute_capability = "12.0"
  sms                = 36
  boost_mhz          = 2572
  l2_mib             = 32
  memory_mib         = 16311
  bus_bits           = 128
  bandwidth_gbs      = 448
  power_w            = 180
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 23.7
  tensor_fp16_tflops = 47.4
  tensor_bf16_tflops = 47.4
  tensor_fp8_tflops  = 94.8
  tensor_int8_tops   = 189.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5070" {
  name    = "NVIDIA GeForce RTX 5070"
  aliases = ["5070"]

  compute_capability = "12.0"
  sms                = 48
  boost_mhz          = 2512
  l2_mib             = 48
  memory_mib         = 12227
  bus_bits           = 192
  bandwidth_gbs      = 672
  power_w            = 250
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 30.87
  tensor_fp16_tflops = 61.7
  tensor_bf16_tflops = 61.7
  tensor_fp8_tflops  = 123.4
  tensor_int8_tops   = 247
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5070-ti" {
  name    = "NVIDIA GeForce RTX 5070 Ti"
  aliases = ["5070-ti"]

  compute_capability = "12.0"
  sms                = 70
  boost_mhz          = 2452
  l2_mib             = 48
  memory_mib         = 16303
  bus_bits           = 256
  bandwidth_gbs      = 896
  power_w            = 300
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 43.94
  tensor_fp16_tflops = 87.9
  tensor_bf16_tflops = 87.9
  tensor_fp8_tflops  = 175.8
  tensor_int8_tops   = 352
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5080" {
  name    = "NVIDIA GeForce RTX 5080"
  aliases = ["5080"]

  compute_capability = "12.0"
  sms                = 84
  boost_mhz          = 2617
  l2_mib             = 64
  memory_mib         = 16303
  bus_bits           = 256
  bandwidth_gbs      = 960
  power_w            = 360
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 56.28
  tensor_fp16_tflops = 112.6
  tensor_bf16_tflops = 112.6
  tensor_fp8_tflops  = 225.2
  tensor_int8_tops   = 450
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-5090-d" {
  name    = "NVIDIA GeForce RTX 5090 D"
  aliases = ["5090-d"]

  compute_capability = "12.0"
  sms                = 170
  boost_mhz          = 2407
  l2_mib             = 96
  memory_mib         = 32607
  bus_bits           = 512
  bandwidth_gbs      = 1792
  power_w            = 575
  pcie_generation    = 5
  year               = 2025

  fp32_tflops  = 104.75
  tensor_types = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "tensor rates are capped, 2375 AI TOPS against 3352 of the RTX 5090, and left out because no dense figure is known"
}

target "rtx-5090" {
  name    = "NVIDIA GeForce RTX 5090"
  aliases = ["5090"]

  compute_capability = "12.0"
  sms                = 170
  boost_mhz          = 2407
  l2_mib             = 96
  memory_mib         = 32607
  bus_bits           = 512
  bandwidth_gbs      = 1792
  power_w            = 575
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 104.75
  tensor_fp16_tflops = 209.5
  tensor_bf16_tflops = 209.5
  tensor_fp8_tflops  = 419
  tensor_int8_tops   = 838
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "rtx-pro-2000" {
  name    = "NVIDIA RTX PRO 2000 Blackwell"
  aliases = ["pro-2000"]

  compute_capability = "12.0"
  sms                = 34
  boost_mhz          = 1950
  l2_mib             = 32
  memory_mib         = 16311
  bus_bits           = 128
  bandwidth_gbs      = 288
  power_w            = 70
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 16.97
  tensor_fp16_tflops = 67.9
  tensor_bf16_tflops = 67.9
  tensor_fp8_tflops  = 135.8
  tensor_int8_tops   = 135.8
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "figures of the card as public tables of specifications print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the memory is that of other Blackwell cards with 16 GB; L2 is that of the GB206"
}

target "rtx-pro-4000-sff" {
  name    = "NVIDIA RTX PRO 4000 Blackwell SFF Edition"
  aliases = ["pro-4000-sff"]

  compute_capability = "12.0"
  sms                = 70
  boost_mhz          = 1337
  l2_mib             = 48
  memory_mib         = 24467
  bus_bits           = 192
  bandwidth_gbs      = 432
  power_w            = 70
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 23.96
  tensor_fp16_tflops = 95.8
  tensor_bf16_tflops = 95.8
  tensor_fp8_tflops  = 191.7
  tensor_int8_tops   = 191.7
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "figures of the card as public tables of specifications print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the memory is that of the RTX PRO 4000; the name in NVML was not seen"
}

target "rtx-pro-4000" {
  name    = "NVIDIA RTX PRO 4000 Blackwell"
  aliases = ["pro-4000"]

  compute_capability = "12.0"
  sms                = 70
  boost_mhz          = 2617
  l2_mib             = 48
  memory_mib         = 24467
  bus_bits           = 192
  bandwidth_gbs      = 672
  power_w            = 140
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 46.9
  tensor_fp16_tflops = 187.6
  tensor_bf16_tflops = 187.6
  tensor_fp8_tflops  = 375.2
  tensor_int8_tops   = 375.2
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
  note   = "the memory is approximate"
}

target "rtx-pro-4500" {
  name    = "NVIDIA RTX PRO 4500 Blackwell"
  aliases = ["pro-4500"]

  compute_capability = "12.0"
  sms                = 82
  boost_mhz          = 2617
  l2_mib             = 64
  memory_mib         = 32623
  bus_bits           = 256
  bandwidth_gbs      = 896
  power_w            = 200
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 54.9
  tensor_fp16_tflops = 219.7
  tensor_bf16_tflops = 219.7
  tensor_fp8_tflops  = 439.4
  tensor_int8_tops   = 439.4
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
  note   = "the memory is approximate"
}

target "rtx-pro-5000" {
  name    = "NVIDIA RTX PRO 5000 Blackwell"
  aliases = ["pro-5000"]

  compute_capability = "12.0"
  sms                = 110
  boost_mhz          = 2617
  l2_mib             = 96
  memory_mib         = 48935
  bus_bits           = 384
  bandwidth_gbs      = 1344
  power_w            = 300
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 73.7
  tensor_fp16_tflops = 294.8
  tensor_bf16_tflops = 294.8
  tensor_fp8_tflops  = 589.6
  tensor_int8_tops   = 589.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
  note   = "the memory is approximate"
}

target "rtx-pro-6000" {
  name    = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
  aliases = ["pro-6000", "rtx-pro-6000-blackwell", "rtx-pro-6000-workstation"]

  compute_capability = "12.0"
  sms                = 188
  boost_mhz          = 2617
  l2_mib             = 128
  memory_mib         = 97887
  bus_bits           = 512
  bandwidth_gbs      = 1792
  power_w            = 600
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 125
  tensor_fp16_tflops = 503.8
  tensor_bf16_tflops = 503.8
  tensor_fp8_tflops  = 1007
  tensor_int8_tops   = 1007
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
}

target "rtx-pro-6000-server" {
  name    = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
  aliases = ["pro-6000-server", "rtx-pro-6000-blackwell-server", "rtx-pro-6000s"]

  compute_capability = "12.0"
  sms                = 188
  boost_mhz          = 2430
  l2_mib             = 128
  memory_mib         = 97887
  bus_bits           = 512
  bandwidth_gbs      = 1597
  power_w            = 600
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 117
  tensor_fp16_tflops = 467.8
  tensor_bf16_tflops = 467.8
  tensor_fp8_tflops  = 935.6
  tensor_int8_tops   = 935.6
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
  note   = "clock and bandwidth as in the datasheet of the server edition"
}

target "rtx-pro-6000-max-q" {
  name    = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
  aliases = ["pro-6000-max-q", "rtx-pro-6000-blackwell-max-q"]

  compute_capability = "12.0"
  sms                = 188
  boost_mhz          = 2280
  l2_mib             = 128
  memory_mib         = 97887
  bus_bits           = 512
  bandwidth_gbs      = 1792
  power_w            = 300
  pcie_generation    = 5
  year               = 2025

  fp32_tflops        = 110
  tensor_fp16_tflops = 438.9
  tensor_bf16_tflops = 438.9
  tensor_fp8_tflops  = 877.8
  tensor_int8_tops   = 877.8
  tensor_types       = ["fp16", "bf16", "tf32", "fp8", "fp6", "fp4", "int8"]

  source = "NVIDIA datasheet, from memory"
}
