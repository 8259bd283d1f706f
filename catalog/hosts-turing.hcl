# GPUs to run on: Turing, 2018.
# For work without the hardware, and for what NVML does not tell. clocks_mhz are the SM clocks to lock: lowest, highest and
# the step between; power_w the lowest, default and highest limit; fp32_per_sm and tensor_per_sm FLOP per clock and SM, the
# tensor rate dense FP16 accumulating in FP32. Of a profile, id is what nvidia-smi calls it and starts are its placements.

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
