host "lab" {
  simulate = "1 x h200"
  image    = "cosplay:latest"
}

session "worker" {
  target  = "2060"
  runtime = "docker"
  base    = "rtx-2060"
  weather = "fine"
}
