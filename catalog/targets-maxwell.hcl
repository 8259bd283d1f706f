# Targets, GPUs that a session can present: Maxwell, 2014.
# Rates are dense; the GPUs have no tensor cores. MiB are as printed on the box.

target "gtx-750" {
  name    = "NVIDIA GeForce GTX 750"
  aliases = ["750"]

  compute_capability = "5.0"
  sms                = 4
  boost_mhz          = 1085
  l2_mib             = 2
  memory_mib         = 1024
  bus_bits           = 128
  bandwidth_gbs      = 80
  power_w            = 55
  pcie_generation    = 3
  year               = 2014

  fp32_tflops = 1.11

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-750-ti" {
  name    = "NVIDIA GeForce GTX 750 Ti"
  aliases = ["750-ti"]

  compute_capability = "5.0"
  sms                = 5
  boost_mhz          = 1085
  l2_mib             = 2
  memory_mib         = 2048
  bus_bits           = 128
  bandwidth_gbs      = 86.4
  power_w            = 60
  pcie_generation    = 3
  year               = 2014

  fp32_tflops = 1.39

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-950" {
  name    = "NVIDIA GeForce GTX 950"
  aliases = ["950"]

  compute_capability = "5.2"
  sms                = 6
  boost_mhz          = 1188
  l2_mib             = 1
  memory_mib         = 2048
  bus_bits           = 128
  bandwidth_gbs      = 106
  power_w            = 90
  pcie_generation    = 3
  year               = 2015

  fp32_tflops = 1.82

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-960" {
  name    = "NVIDIA GeForce GTX 960"
  aliases = ["960"]

  compute_capability = "5.2"
  sms                = 8
  boost_mhz          = 1178
  l2_mib             = 1
  memory_mib         = 2048
  bus_bits           = 128
  bandwidth_gbs      = 112
  power_w            = 120
  pcie_generation    = 3
  year               = 2015

  fp32_tflops = 2.41

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "a version with 4096 MiB exists"
}

target "gtx-970" {
  name    = "NVIDIA GeForce GTX 970"
  aliases = ["970"]

  compute_capability = "5.2"
  sms                = 13
  boost_mhz          = 1178
  l2_mib             = 1.75
  memory_mib         = 4096
  bus_bits           = 256
  bandwidth_gbs      = 224
  power_w            = 145
  pcie_generation    = 3
  year               = 2014

  fp32_tflops = 3.92

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the last 512 MiB of its memory are slower, which cosplay does not show; L2 and power from memory"
}

target "gtx-980" {
  name    = "NVIDIA GeForce GTX 980"
  aliases = ["980"]

  compute_capability = "5.2"
  sms                = 16
  boost_mhz          = 1216
  l2_mib             = 2
  memory_mib         = 4096
  bus_bits           = 256
  bandwidth_gbs      = 224
  power_w            = 165
  pcie_generation    = 3
  year               = 2014

  fp32_tflops = 4.98

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "power from memory"
}

target "gtx-980-ti" {
  name    = "NVIDIA GeForce GTX 980 Ti"
  aliases = ["980-ti"]

  compute_capability = "5.2"
  sms                = 22
  boost_mhz          = 1075
  l2_mib             = 3
  memory_mib         = 6144
  bus_bits           = 384
  bandwidth_gbs      = 336.5
  power_w            = 250
  pcie_generation    = 3
  year               = 2015

  fp32_tflops = 6.05

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
}

target "gtx-titan-x" {
  name    = "NVIDIA GeForce GTX TITAN X"
  aliases = ["titan-x"]

  compute_capability = "5.2"
  sms                = 24
  boost_mhz          = 1075
  l2_mib             = 3
  memory_mib         = 12288
  bus_bits           = 384
  bandwidth_gbs      = 336.5
  power_w            = 250
  pcie_generation    = 3
  year               = 2015

  fp32_tflops = 6.6

  source = "figures of the reference card as reviews of its release print them; rates follow from SMs, boost clock and the rate of an SM"
  note   = "the Maxwell card of that name; deviceQuery shows 12205 MiB"
}
