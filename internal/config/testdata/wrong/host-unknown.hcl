host "lab" {
  simulate = "8 x h200"
}

session "worker" {
  target = "rtx-2060"
  host   = "lap"
}
