# Hosts, GPUs that cosplay can use: Turing, 2018.
# The values serve work without the hardware, and values that NVML does not report. clocks_mhz: the lowest and highest SM
# clock that can be locked, and the step between; power_w: the lowest, default and highest limit; fp32_per_sm and
# tensor_per_sm: FLOP per clock and SM, the tensor rate for dense FP16 with FP32 accumulation. In a profile, id is its
# number in nvidia-smi, and starts are its placements.

host "t4" {
  name = "Tesla T4"

  compute_capability = "7.5"
  sms                = 40
  fp32_per_sm        = 128
  tensor_per_sm      = 1024
  l2_mib             = 4
  memory_mib         = 15360
  bandwidth_gbs      = 320
  clocks_mhz         = { min = 300, max = 1590, step = 15 }
  power_w            = { min = 60, default = 70, max = 70 }

  source = "NVIDIA datasheet, from memory; power agrees with the profiles of NVIDIA/k8s-test-infra"
}
