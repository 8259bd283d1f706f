session "worker" {
  for_each = toset(["0"])
  target   = "2060"
}

session "worker-0" {
  target = "2060"
}
