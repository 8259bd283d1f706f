session "worker" {
  target = "rtx-2060"
  pull   = "allways"
}
