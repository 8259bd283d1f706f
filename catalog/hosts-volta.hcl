# Hosts, GPUs that cosplay can use: Volta, 2017.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "v100" {
  name    = "Tesla V100-SXM2-32GB"
  aliases = ["v100-32gb", "v100-sxm2", "v100-sxm2-32gb"]

  compute_capability = "7.0"
  sms                = 80
  fp32_per_sm        = 128
  tensor_per_sm      = 1024
  l2_mib             = 6
  memory_mib         = 32768
  bandwidth_gbs      = 900
  clocks_mhz         = { min = 135, max = 1530, step = 7.5 }
  power_w            = { min = 150, default = 300, max = 300 }

  source = "NVIDIA datasheet, from memory"
}
