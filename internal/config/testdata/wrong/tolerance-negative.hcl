session "worker" {
  target = "rtx-2060"
  fit {
    tolerance = -0.1
  }
}

session "text" {
  target = "rtx-2060"
  fit {
    tolerance = "-10%"
  }
}
