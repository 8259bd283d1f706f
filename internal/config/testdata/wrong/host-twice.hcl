host "lab" {
  simulate = "8 x h200"
}

host "lab" {
  simulate = "1 x h200"
}
