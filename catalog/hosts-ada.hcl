# Hosts, GPUs that cosplay can use: Ada Lovelace, 2022.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "l4" {
  name = "NVIDIA L4"

  compute_capability = "8.9"
  sms                = 58
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 48
  memory_mib         = 23034
  bandwidth_gbs      = 300
  clocks_mhz         = { min = 210, max = 2040, step = 15 }
  power_w            = { min = 40, default = 72, max = 72 }

  source = "NVIDIA datasheet, from memory; power as published nvidia-smi output shows it"
}

host "l40" {
  name = "NVIDIA L40"

  compute_capability = "8.9"
  sms                = 142
  fp32_per_sm        = 256
  tensor_per_sm      = 512
  l2_mib             = 96
  memory_mib         = 46068
  bandwidth_gbs      = 864
  clocks_mhz         = { min = 210, max = 2490, step = 15 }
  power_w            = { min = 100, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory; tensor cores run at half rate when accumulating in FP32, 181.05 TFLOPS dense in the datasheet"
}

host "l40s" {
  name = "NVIDIA L40S"

  compute_capability = "8.9"
  sms                = 142
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 96
  memory_mib         = 46068
  bandwidth_gbs      = 864
  clocks_mhz         = { min = 210, max = 2520, step = 15 }
  power_w            = { min = 100, default = 350, max = 350 }

  source = "NVIDIA datasheet, from memory; power agrees with the profiles of NVIDIA/k8s-test-infra"
}

host "rtx-6000-ada" {
  name    = "NVIDIA RTX 6000 Ada Generation"
  aliases = ["6000-ada"]

  compute_capability = "8.9"
  sms                = 142
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 96
  memory_mib         = 49140
  bandwidth_gbs      = 960
  clocks_mhz         = { min = 210, max = 3105, step = 15 }
  power_w            = { min = 100, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory"
}

host "rtx-4090" {
  name    = "NVIDIA GeForce RTX 4090"
  aliases = ["4090"]

  compute_capability = "8.9"
  sms                = 128
  fp32_per_sm        = 256
  tensor_per_sm      = 512
  l2_mib             = 72
  memory_mib         = 24564
  bandwidth_gbs      = 1008
  clocks_mhz         = { min = 210, max = 3105, step = 15 }
  power_w            = { min = 150, default = 450, max = 600 }

  source = "NVIDIA datasheet, from memory"
  unsure = "the highest power limit varies by board vendor"
}
