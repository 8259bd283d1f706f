session "worker" {
  target = "rtx-2060"
  volume = "/data:/data"
}
