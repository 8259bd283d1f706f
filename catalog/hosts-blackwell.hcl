# Hosts, GPUs that cosplay can use: Blackwell, 2024.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "b200" {
  name = "NVIDIA B200"

  compute_capability = "10.0"
  sms                = 148
  fp32_per_sm        = 256
  tensor_per_sm      = 8192
  l2_mib             = 126
  memory_mib         = 183359
  bandwidth_gbs      = 7672
  clocks_mhz         = { min = 120, max = 1965, step = 15 }
  power_w            = { min = 200, default = 1000, max = 1000 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.23gb",    id = 19, sms = 18,  memory_mib = 22528,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.23gb+me", id = 20, sms = 18,  memory_mib = 22528,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.45gb",    id = 15, sms = 30,  memory_mib = 45312,  memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.45gb",    id = 14, sms = 36,  memory_mib = 45312,  memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.90gb",    id = 9,  sms = 70,  memory_mib = 91136,  memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.90gb",    id = 5,  sms = 72,  memory_mib = 91136,  memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.180gb",   id = 0,  sms = 148, memory_mib = 182272, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "1g and 2g profiles from nvidia-smi -lgip output published with NVIDIA/mig-parted and NVIDIA/gpu-operator; SMs, highest clock, memory, bandwidth and L2 as a driver reports them"
  unsure = "the SMs and memory of 3g, 4g and 7g are extrapolated; the lowest clock and the lowest power limit are guesses"
}

host "gb200" {
  name = "NVIDIA GB200"

  compute_capability = "10.0"
  sms                = 152
  fp32_per_sm        = 256
  tensor_per_sm      = 8192
  l2_mib             = 126
  memory_mib         = 189471
  bandwidth_gbs      = 8000
  clocks_mhz         = { min = 120, max = 2062, step = 15 }
  power_w            = { min = 200, default = 1200, max = 1200 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.24gb",    id = 19, sms = 18,  memory_mib = 20480,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.24gb+me", id = 20, sms = 18,  memory_mib = 20480,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.47gb",    id = 15, sms = 32,  memory_mib = 46592,  memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.47gb",    id = 14, sms = 38,  memory_mib = 46592,  memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.95gb",    id = 9,  sms = 70,  memory_mib = 94208,  memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.95gb",    id = 5,  sms = 72,  memory_mib = 94208,  memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.189gb",   id = 0,  sms = 152, memory_mib = 188416, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "1g and 2g profiles from nvidia-smi -lgip output published with NVIDIA/gpu-operator and NVIDIA/mig-parted; the rest from the NVIDIA datasheet, from memory"
  unsure = "3g, 4g and 7g are extrapolated; the names of profiles vary by firmware, 1g.23gb was seen; the lowest clock and the lowest power limit are guesses"
}

# Plain "rtx-pro-6000" means this one: the server edition, whose MIG table is known.
host "rtx-pro-6000-server" {
  name    = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
  aliases = ["rtx-pro-6000", "pro-6000", "pro-6000-server", "rtx-pro-6000-blackwell-server", "rtx-pro-6000s"]

  compute_capability = "12.0"
  sms                = 188
  fp32_per_sm        = 256
  tensor_per_sm      = 1024
  l2_mib             = 128
  memory_mib         = 97887
  bandwidth_gbs      = 1597
  clocks_mhz         = { min = 180, max = 2430, step = 15 }
  power_w            = { min = 300, default = 600, max = 600 }

  memory_slices  = 4
  compute_slices = 4
  profiles = [
    { name = "1g.24gb",        id = 14, sms = 46,  memory_mib = 24192, memory_slices = 1, compute_slices = 1, max_instances = 4, starts = [0, 1, 2, 3] },
    { name = "1g.24gb+me",     id = 21, sms = 46,  memory_mib = 24192, memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3] },
    { name = "1g.24gb+gfx",    id = 47, sms = 46,  memory_mib = 24192, memory_slices = 1, compute_slices = 1, max_instances = 4, starts = [0, 1, 2, 3] },
    { name = "1g.24gb+me.all", id = 65, sms = 46,  memory_mib = 24192, memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3] },
    { name = "1g.24gb-me",     id = 67, sms = 46,  memory_mib = 24192, memory_slices = 1, compute_slices = 1, max_instances = 4, starts = [0, 1, 2, 3] },
    { name = "2g.48gb",        id = 5,  sms = 94,  memory_mib = 48512, memory_slices = 2, compute_slices = 2, max_instances = 2, starts = [0, 2] },
    { name = "2g.48gb+gfx",    id = 35, sms = 94,  memory_mib = 48512, memory_slices = 2, compute_slices = 2, max_instances = 2, starts = [0, 2] },
    { name = "2g.48gb+me.all", id = 64, sms = 94,  memory_mib = 48512, memory_slices = 2, compute_slices = 2, max_instances = 1, starts = [0, 2] },
    { name = "2g.48gb-me",     id = 66, sms = 94,  memory_mib = 48512, memory_slices = 2, compute_slices = 2, max_instances = 2, starts = [0, 2] },
    { name = "4g.96gb",        id = 0,  sms = 188, memory_mib = 97280, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "4g.96gb+gfx",    id = 32, sms = 188, memory_mib = 97280, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from nvidia-smi output published with GoogleCloudPlatform/container-engine-accelerators and bottlerocket-os/bottlerocket-kernel-kit; the rest from the datasheet of the server edition, from memory"
  unsure = "the clock range and the lowest power limit"
}

host "rtx-5090" {
  name    = "NVIDIA GeForce RTX 5090"
  aliases = ["5090"]

  compute_capability = "12.0"
  sms                = 170
  fp32_per_sm        = 256
  tensor_per_sm      = 512
  l2_mib             = 96
  memory_mib         = 32607
  bandwidth_gbs      = 1792
  clocks_mhz         = { min = 180, max = 3090, step = 7.5 }
  power_w            = { min = 400, default = 575, max = 600 }

  source = "NVIDIA datasheet, from memory"
  unsure = "the highest power limit varies by board vendor"
}
