session "worker" {
  target = "rtx-2060"
  fit    = { tolerance = "5%" }
}
