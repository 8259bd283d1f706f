session "worker" {
  traget = "rtx-2060"
  target = "rtx-2060"
  colour = "green"
}
