sesion "worker" {
  target = "rtx-2060"
}

resource "gpu" "a" {
}
