host "lab" {
  simulate = "8 x h200"
  nvml     = "/opt/lib/libnvidia-ml.so.1"
}
