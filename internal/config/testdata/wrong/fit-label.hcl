session "worker" {
  target = "rtx-2060"
  fit "close" {
    tolerance = "5%"
  }
}
