session "worker" {
  target = "rtx-2060"
  sudo   = "yes"
}
