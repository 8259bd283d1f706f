host "lab" {
  simulate = "8 x h200"
  gpus     = []
}
