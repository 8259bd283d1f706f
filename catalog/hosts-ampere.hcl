# Hosts, GPUs that cosplay can use: Ampere, 2020.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "a30" {
  name = "NVIDIA A30"

  compute_capability = "8.0"
  sms                = 56
  fp32_per_sm        = 128
  tensor_per_sm      = 2048
  l2_mib             = 24
  memory_mib         = 24576
  bandwidth_gbs      = 933
  clocks_mhz         = { min = 210, max = 1440, step = 15 }
  power_w            = { min = 100, default = 165, max = 165 }

  memory_slices  = 4
  compute_slices = 4
  profiles = [
    { name = "1g.6gb",     id = 14, sms = 14, memory_mib = 5952,  memory_slices = 1, compute_slices = 1, max_instances = 4, starts = [0, 1, 2, 3] },
    { name = "1g.6gb+me",  id = 21, sms = 14, memory_mib = 5952,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3] },
    { name = "2g.12gb",    id = 5,  sms = 28, memory_mib = 11968, memory_slices = 2, compute_slices = 2, max_instances = 2, starts = [0, 2] },
    { name = "2g.12gb+me", id = 6,  sms = 28, memory_mib = 11968, memory_slices = 2, compute_slices = 2, max_instances = 1, starts = [0, 2] },
    { name = "4g.24gb",    id = 0,  sms = 56, memory_mib = 24000, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from nvidia-smi -lgip output that users published; clocks, power, bandwidth and L2 from the NVIDIA datasheet, from memory"
}

# Plain "a100" is this one, as among the targets: what fits on it fits on the 80 GB card too.
host "a100-40gb" {
  name    = "NVIDIA A100-SXM4-40GB"
  aliases = ["a100", "a100-sxm4-40gb", "a100-sxm-40gb"]

  compute_capability = "8.0"
  sms                = 108
  fp32_per_sm        = 128
  tensor_per_sm      = 2048
  l2_mib             = 40
  memory_mib         = 40960
  bandwidth_gbs      = 1555
  clocks_mhz         = { min = 210, max = 1410, step = 15 }
  power_w            = { min = 100, default = 400, max = 400 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.5gb",    id = 19, sms = 14, memory_mib = 4864,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.5gb+me", id = 20, sms = 14, memory_mib = 4864,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.10gb",   id = 15, sms = 14, memory_mib = 9856,  memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.10gb",   id = 14, sms = 28, memory_mib = 9856,  memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.20gb",   id = 9,  sms = 42, memory_mib = 19968, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.20gb",   id = 5,  sms = 56, memory_mib = 19968, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.40gb",   id = 0,  sms = 98, memory_mib = 40192, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from nvidia-smi -lgip output of Argonne's ALCF and the a100 mock of NVIDIA/go-nvml; clocks and power from the hardware XML of NVIDIA/k8s-test-infra; bandwidth and L2 from the NVIDIA datasheet, from memory"
}

host "a100-80gb" {
  name    = "NVIDIA A100-SXM4-80GB"
  aliases = ["a100-sxm4-80gb", "a100-sxm-80gb"]

  compute_capability = "8.0"
  sms                = 108
  fp32_per_sm        = 128
  tensor_per_sm      = 2048
  l2_mib             = 40
  memory_mib         = 81920
  bandwidth_gbs      = 2039
  clocks_mhz         = { min = 210, max = 1410, step = 15 }
  power_w            = { min = 100, default = 400, max = 400 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.10gb",    id = 19, sms = 14, memory_mib = 9728,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.10gb+me", id = 20, sms = 14, memory_mib = 9728,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.20gb",    id = 15, sms = 14, memory_mib = 19968, memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.20gb",    id = 14, sms = 28, memory_mib = 19968, memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.40gb",    id = 9,  sms = 42, memory_mib = 40192, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.40gb",    id = 5,  sms = 56, memory_mib = 40192, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.80gb",    id = 0,  sms = 98, memory_mib = 80384, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from the NVIDIA MIG User Guide and published nvidia-smi output; bandwidth and L2 shares as device properties show them; clocks and power from the NVIDIA datasheet, from memory"
  unsure = "older drivers give 1g.10gb 9856 MiB; one published nvidia-smi output shows a power limit of 500 W"
}

host "a10" {
  name = "NVIDIA A10"

  compute_capability = "8.6"
  sms                = 72
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 6
  memory_mib         = 23028
  bandwidth_gbs      = 600
  clocks_mhz         = { min = 210, max = 1695, step = 15 }
  power_w            = { min = 100, default = 150, max = 150 }

  source = "NVIDIA datasheet, from memory"
}

host "a40" {
  name = "NVIDIA A40"

  compute_capability = "8.6"
  sms                = 84
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 6
  memory_mib         = 46068
  bandwidth_gbs      = 696
  clocks_mhz         = { min = 210, max = 1740, step = 15 }
  power_w            = { min = 100, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory"
}

host "rtx-3090" {
  name    = "NVIDIA GeForce RTX 3090"
  aliases = ["3090"]

  compute_capability = "8.6"
  sms                = 82
  fp32_per_sm        = 256
  tensor_per_sm      = 512
  l2_mib             = 6
  memory_mib         = 24576
  bandwidth_gbs      = 936
  clocks_mhz         = { min = 210, max = 2100, step = 15 }
  power_w            = { min = 100, default = 350, max = 400 }

  source = "NVIDIA datasheet, from memory"
  unsure = "the highest power limit varies by board vendor"
}

host "rtx-a6000" {
  name    = "NVIDIA RTX A6000"
  aliases = ["a6000"]

  compute_capability = "8.6"
  sms                = 84
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 6
  memory_mib         = 49140
  bandwidth_gbs      = 768
  clocks_mhz         = { min = 210, max = 2100, step = 15 }
  power_w            = { min = 100, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory"
}
