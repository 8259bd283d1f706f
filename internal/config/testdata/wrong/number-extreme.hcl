session "worker" {
  count  = 1e999
  target = "rtx-2060"
  gpu    = -1e999
  env    = { TINY = 1e-999, HUGE = 1e999 }

  fit {
    tolerance = 1 / 0
  }
}

session "text" {
  count  = "1e999"
  target = "rtx-2060"
}
