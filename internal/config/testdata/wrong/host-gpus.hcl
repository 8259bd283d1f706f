host "lab" {
  simulate = "8 x h200"
  gpus     = [0, "one", 0.5, "0000:84:00.0", "84:00.0"]
}
