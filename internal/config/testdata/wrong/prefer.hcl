session "worker" {
  target = "rtx-2060"
  fit {
    prefer = "fp23"
  }
}
