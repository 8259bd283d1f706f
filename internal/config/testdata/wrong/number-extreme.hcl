session "worker" {
  count  = 1e9999999
  target = "rtx-2060"
  gpu    = -1e9999999
  env    = { TINY = 1e-9999999, HUGE = 1e9999999 }

  fit {
    tolerance = 1 / 0
  }
}

session "text" {
  count  = "1e9999999"
  target = "rtx-2060"
}
