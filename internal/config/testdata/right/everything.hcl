host "lab" {
  simulate        = "8 x h200"
  runtime         = "process"
  gpus            = [0, "GPU-8F2A0000-1111", "0000:8a:00.0"]
  manage          = ["slices", "clocks"]
  baseline_clock  = 1200
  slow_neighbours = true
}

host "attic" {
  nvml   = "lib/libnvidia-ml.so.1"
  manage = []
}

session "worker" {
  target    = "NVIDIA GeForce RTX 2060"
  host      = "lab"
  gpu       = "GPU-8f2a0000-1111"
  command   = ["python", "train.py"]
  workspace = "~/exp/../runs"
  env       = { SEED = 11, DEBUG = true, RATE = 0.5, EMPTY = "" }
  strict    = true

  fit {
    prefer    = "balanced"
    tolerance = "2.5 %"
    max_error = 0.5
  }
}

session "big" {
  target    = "rtx-3090"
  host      = "attic"
  workspace = "/data"

  fit {
    tolerance = 0
    max_error = "150%"
  }
}
