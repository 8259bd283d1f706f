host "lab" {
  simulate = "8 h200"
  runtime  = "docker"
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
