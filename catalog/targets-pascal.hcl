# Targets, GPUs that a session can present: Pascal, 2016.
# Rates are dense, and tensor rates are for FP32 accumulation; the GPU lacks a rate that is left out. MiB are as NVML shows.

target "gtx-1050" {
  name    = "NVIDIA GeForce GTX 1050"
  aliases = ["1050"]

  compute_capability = "6.1"
  sms                = 5
  boost_mhz          = 1455
  l2_mib             = 1
  memory_mib         = 2048
  bus_bits           = 128
  bandwidth_gbs      = 112
  power_w            = 75
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 1.86

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1050-ti" {
  name    = "NVIDIA GeForce GTX 1050 Ti"
  aliases = ["1050-ti"]

  compute_capability = "6.1"
  sms                = 6
  boost_mhz          = 1392
  l2_mib             = 1
  memory_mib         = 4096
  bus_bits           = 128
  bandwidth_gbs      = 112
  power_w            = 75
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 2.14

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1060-3gb" {
  name    = "NVIDIA GeForce GTX 1060 3GB"
  aliases = ["1060-3gb"]

  compute_capability = "6.1"
  sms                = 9
  boost_mhz          = 1708
  l2_mib             = 1.5
  memory_mib         = 3072
  bus_bits           = 192
  bandwidth_gbs      = 192
  power_w            = 120
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 3.94

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1060" {
  name    = "NVIDIA GeForce GTX 1060 6GB"
  aliases = ["1060", "1060-6gb"]

  compute_capability = "6.1"
  sms                = 10
  boost_mhz          = 1708
  l2_mib             = 1.5
  memory_mib         = 6144
  bus_bits           = 192
  bandwidth_gbs      = 192
  power_w            = 120
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 4.37

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1070" {
  name    = "NVIDIA GeForce GTX 1070"
  aliases = ["1070"]

  compute_capability = "6.1"
  sms                = 15
  boost_mhz          = 1683
  l2_mib             = 2
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 256
  power_w            = 150
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 6.46

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1070-ti" {
  name    = "NVIDIA GeForce GTX 1070 Ti"
  aliases = ["1070-ti"]

  compute_capability = "6.1"
  sms                = 19
  boost_mhz          = 1683
  l2_mib             = 2
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 256
  power_w            = 180
  pcie_generation    = 3
  year               = 2017

  fp32_tflops = 8.19

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1080" {
  name    = "NVIDIA GeForce GTX 1080"
  aliases = ["1080"]

  compute_capability = "6.1"
  sms                = 20
  boost_mhz          = 1733
  l2_mib             = 2
  memory_mib         = 8192
  bus_bits           = 256
  bandwidth_gbs      = 320
  power_w            = 180
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 8.87

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-1080-ti" {
  name    = "NVIDIA GeForce GTX 1080 Ti"
  aliases = ["1080-ti"]

  compute_capability = "6.1"
  sms                = 28
  boost_mhz          = 1582
  l2_mib             = 2.75
  memory_mib         = 11264
  bus_bits           = 352
  bandwidth_gbs      = 484
  power_w            = 250
  pcie_generation    = 3
  year               = 2017

  fp32_tflops = 11.34

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}

target "p4" {
  name = "Tesla P4"

  compute_capability = "6.1"
  sms                = 20
  boost_mhz          = 1063
  l2_mib             = 2
  memory_mib         = 7680
  bus_bits           = 256
  bandwidth_gbs      = 192
  power_w            = 75
  pcie_generation    = 3
  year               = 2016

  fp32_tflops      = 5.44
  tensor_int8_tops = 22

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the memory is with ECC on; boosts up to 1531 MHz when it can"
}

target "p40" {
  name = "Tesla P40"

  compute_capability = "6.1"
  sms                = 30
  boost_mhz          = 1531
  l2_mib             = 3
  memory_mib         = 24576
  bus_bits           = 384
  bandwidth_gbs      = 346
  power_w            = 250
  pcie_generation    = 3
  year               = 2016

  fp32_tflops      = 11.76
  tensor_int8_tops = 47

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "22919 or 23040 MiB with ECC on"
}

target "p100-pcie" {
  name    = "Tesla P100-PCIE-16GB"
  aliases = ["p100", "p100-pcie-16gb"]

  compute_capability = "6.0"
  sms                = 56
  boost_mhz          = 1303
  l2_mib             = 4
  memory_mib         = 16384
  bus_bits           = 4096
  bandwidth_gbs      = 732
  power_w            = 250
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 9.34

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
  note   = "old drivers show 16280 MiB"
}

target "p100-sxm2" {
  name    = "Tesla P100-SXM2-16GB"
  aliases = ["p100-sxm2-16gb"]

  compute_capability = "6.0"
  sms                = 56
  boost_mhz          = 1480
  l2_mib             = 4
  memory_mib         = 16384
  bus_bits           = 4096
  bandwidth_gbs      = 732
  power_w            = 300
  pcie_generation    = 3
  year               = 2016

  fp32_tflops = 10.61

  source = "NVIDIA product page or whitepaper, from memory; rates follow from SMs, boost clock and the rate of an SM"
}
