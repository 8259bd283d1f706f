host "lab" {
  simulate = "8 h200"
  runtime  = "dokcer"
}

sesion "worker" {
}

session "worker" {
  count  = -7
  target = "2600"
  host   = "lap"
  colour = "green"

  fit {
    prefer    = "speed"
    tolerance = "ten"
  }
}

session "bare" {
}
