session "worker" {
  target = "rtx-2060"
  fit {
    tolerence = "5%"
  }
}
