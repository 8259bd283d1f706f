session "worker" {
  target = "rtx-2060"
  gpu    = "first"
}

session "below" {
  target = "rtx-2060"
  gpu    = -1
}

session "slice" {
  target = "rtx-2060"
  gpu    = "MIG-41c2f0a8"
}

session "many" {
  target = "rtx-2060"
  gpu    = [0]
}
