session "worker" {
  target = "rtx-2060"
  fit {
    tolerance = "10"
  }
}

session "number" {
  target = "rtx-2060"
  fit {
    tolerance = 10
  }
}

session "list" {
  target = "rtx-2060"
  fit {
    tolerance = ["10%"]
  }
}
