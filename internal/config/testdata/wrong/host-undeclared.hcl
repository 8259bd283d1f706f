session "worker" {
  target = "rtx-2060"
  host   = "lab"
}
