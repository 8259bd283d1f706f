host "lab" {
  runtime = "docker"
}

session "a" {
  target     = "2060"
  name       = "lab"
  entrypoint = "imag"
}

session "b" {
  target     = "2060"
  name       = "lab"
  entrypoint = ["", "-x"]
}

session "c" {
  count      = 3
  target     = "2060"
  name       = "trainer"
  entrypoint = 7
}

session "d" {
  target = "2060"
  name   = "-a/b"
}
