host "lab" {
  simulate = "8 h200"
}
