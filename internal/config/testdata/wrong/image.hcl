session "worker" {
  target = "rtx-2060"
  image  = "My Image"
}

session "small" {
  target = "rtx-2060"
  image  = "Cosplay:latest"
}

session "nothing" {
  target = "rtx-2060"
  image  = ""
}
