session "worker" {
  target = "rtx-2060"
  restart = no
}
