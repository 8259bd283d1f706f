host "lab" {
  simulate = "1 x h200"
}

host "attic" {
  simulate = "1 x h200"
}

session "worker" {
  gpu    = 0
  target = "rtx-2060"
}
