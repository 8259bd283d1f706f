# Hosts, GPUs that cosplay can use: Hopper, 2022.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "h100" {
  name    = "NVIDIA H100 80GB HBM3"
  aliases = ["h100-sxm", "h100-sxm5", "h100-80gb", "h100-sxm-80gb"]

  compute_capability = "9.0"
  sms                = 132
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 81559
  bandwidth_gbs      = 3352
  clocks_mhz         = { min = 345, max = 1980, step = 15 }
  power_w            = { min = 200, default = 700, max = 700 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.10gb",    id = 19, sms = 16,  memory_mib = 9984,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.10gb+me", id = 20, sms = 16,  memory_mib = 9984,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.20gb",    id = 15, sms = 26,  memory_mib = 20096, memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.20gb",    id = 14, sms = 32,  memory_mib = 20096, memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.40gb",    id = 9,  sms = 60,  memory_mib = 40448, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.40gb",    id = 5,  sms = 64,  memory_mib = 40448, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.80gb",    id = 0,  sms = 132, memory_mib = 81152, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from published nvidia-smi -lgip and -lgipp output; clocks and power as published nvidia-smi output shows them; bandwidth is memory clock x bus width, 2619 MHz by 5120 bit; L2 from the NVIDIA datasheet, from memory"
  unsure = "345 MHz is the idle clock; that it is the lowest one to lock is assumed"
}

host "h100-pcie" {
  name    = "NVIDIA H100 PCIe"
  aliases = ["h100p", "h100-pcie-80gb"]

  compute_capability = "9.0"
  sms                = 114
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 81559
  bandwidth_gbs      = 2039
  clocks_mhz         = { min = 345, max = 1755, step = 15 }
  power_w            = { min = 200, default = 350, max = 350 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.10gb",    id = 19, sms = 14,  memory_mib = 9984,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.10gb+me", id = 20, sms = 14,  memory_mib = 9984,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.20gb",    id = 15, sms = 26,  memory_mib = 20096, memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.20gb",    id = 14, sms = 30,  memory_mib = 20096, memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.40gb",    id = 9,  sms = 50,  memory_mib = 40448, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.40gb",    id = 5,  sms = 56,  memory_mib = 40448, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.80gb",    id = 0,  sms = 114, memory_mib = 81152, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "NVIDIA datasheet and MIG User Guide, from memory"
  unsure = "the SMs of each profile are not verified for the PCIe card; the lowest clock to lock is assumed"
}

host "h100-nvl" {
  name    = "NVIDIA H100 NVL"
  aliases = ["h100-94gb", "h100-nvl-94gb"]

  compute_capability = "9.0"
  sms                = 132
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 95830
  bandwidth_gbs      = 3938
  clocks_mhz         = { min = 345, max = 1785, step = 15 }
  power_w            = { min = 200, default = 400, max = 400 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.12gb",    id = 19, sms = 16,  memory_mib = 11008, memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.12gb+me", id = 20, sms = 16,  memory_mib = 11008, memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.24gb",    id = 15, sms = 26,  memory_mib = 22144, memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.24gb",    id = 14, sms = 32,  memory_mib = 22144, memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.47gb",    id = 9,  sms = 60,  memory_mib = 47488, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.47gb",    id = 5,  sms = 64,  memory_mib = 47488, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.94gb",    id = 0,  sms = 132, memory_mib = 95360, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from nvidia-smi -lgip output published with NVIDIA/gpu-operator and NVIDIA/mig-parted; the rest from the NVIDIA datasheet, from memory"
  unsure = "the lowest clock to lock is assumed"
}

host "gh200" {
  name    = "NVIDIA GH200 480GB"
  aliases = ["gh200-96gb", "gh200-480gb"]

  compute_capability = "9.0"
  sms                = 132
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 97871
  bandwidth_gbs      = 4022
  clocks_mhz         = { min = 345, max = 1980, step = 15 }
  power_w            = { min = 100, default = 900, max = 900 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.12gb",    id = 19, sms = 16,  memory_mib = 11264, memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.12gb+me", id = 20, sms = 16,  memory_mib = 11264, memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.24gb",    id = 15, sms = 26,  memory_mib = 23552, memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.24gb",    id = 14, sms = 32,  memory_mib = 23552, memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.48gb",    id = 9,  sms = 60,  memory_mib = 47616, memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.48gb",    id = 5,  sms = 64,  memory_mib = 47616, memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.96gb",    id = 0,  sms = 132, memory_mib = 95232, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from two published nvidia-smi outputs, which show 3g and 7g; power as published nvidia-smi output shows the limits of the GPU, those of the module being 200 to 1000 W; the rest from the NVIDIA datasheet, from memory"
  unsure = "the memory of 1g.12gb; the lowest clock to lock is assumed"
}

host "gh200-144gb" {
  name    = "NVIDIA GH200 144G HBM3e"
  aliases = ["gh200-144"]

  compute_capability = "9.0"
  sms                = 132
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 146831
  bandwidth_gbs      = 4900
  clocks_mhz         = { min = 345, max = 1980, step = 15 }
  power_w            = { min = 100, default = 900, max = 900 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.18gb",    id = 19, sms = 16,  memory_mib = 17920,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.18gb+me", id = 20, sms = 16,  memory_mib = 17920,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.36gb",    id = 15, sms = 26,  memory_mib = 36096,  memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.36gb",    id = 14, sms = 32,  memory_mib = 36096,  memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.72gb",    id = 9,  sms = 60,  memory_mib = 72192,  memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.72gb",    id = 5,  sms = 64,  memory_mib = 72192,  memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.144gb",   id = 0,  sms = 132, memory_mib = 144384, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "1g and 2g profiles from nvidia-smi -lgip output published with NVIDIA/mig-parted; power as published nvidia-smi output shows it for the GH200; the rest from the NVIDIA datasheet, from memory"
  unsure = "the memory of 3g, 4g and 7g is extrapolated; the lowest clock to lock is assumed"
}

host "h200" {
  name    = "NVIDIA H200"
  aliases = ["h200-sxm", "h200-141gb", "h200-sxm-141gb"]

  compute_capability = "9.0"
  sms                = 132
  fp32_per_sm        = 256
  tensor_per_sm      = 4096
  l2_mib             = 50
  memory_mib         = 143771
  bandwidth_gbs      = 4800
  clocks_mhz         = { min = 345, max = 1980, step = 15 }
  power_w            = { min = 200, default = 700, max = 700 }

  memory_slices  = 8
  compute_slices = 7
  profiles = [
    { name = "1g.18gb",    id = 19, sms = 16,  memory_mib = 16384,  memory_slices = 1, compute_slices = 1, max_instances = 7, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.18gb+me", id = 20, sms = 16,  memory_mib = 16384,  memory_slices = 1, compute_slices = 1, max_instances = 1, starts = [0, 1, 2, 3, 4, 5, 6] },
    { name = "1g.35gb",    id = 15, sms = 26,  memory_mib = 33024,  memory_slices = 2, compute_slices = 1, max_instances = 4, starts = [0, 2, 4, 6] },
    { name = "2g.35gb",    id = 14, sms = 32,  memory_mib = 33024,  memory_slices = 2, compute_slices = 2, max_instances = 3, starts = [0, 2, 4] },
    { name = "3g.71gb",    id = 9,  sms = 60,  memory_mib = 71168,  memory_slices = 4, compute_slices = 3, max_instances = 2, starts = [0, 4] },
    { name = "4g.71gb",    id = 5,  sms = 64,  memory_mib = 71168,  memory_slices = 4, compute_slices = 4, max_instances = 1, starts = [0] },
    { name = "7g.141gb",   id = 0,  sms = 132, memory_mib = 143104, memory_slices = 8, compute_slices = 7, max_instances = 1, starts = [0] },
  ]

  source = "MIG table from nvidia-smi -lgip output published with NVIDIA/mig-parted; clocks and power as published nvidia-smi output shows them; bandwidth and L2 from the NVIDIA datasheet, from memory"
  unsure = "345 MHz is the idle clock; that it is the lowest one to lock is assumed; memory clock x bus width would give 4917 GB/s"
}
