host "lab" {
  runtime = "docker"
}
session "a" {
  target = "2060"
  ports  = ["8888", "x:80", "0:80", "8000-8001:80", "host:80:80", "80:80/sctp", "1-99999999:1-99999999"]
}
session "b" {
  count  = 2
  target = "2060"
  ports  = ["8080:80"]
}
session "c" {
  target = "2060"
  ports  = ["8080:80/udp", "2222:22"]
  ssh {
    port = 2222
  }
}
session "d" {
  target  = "2060"
  network = "none"
}
session "e" {
  target  = "2060"
  network = "container:x"
  ports   = "80:80"
}
session "f" {
  target  = "2060"
  network = "host"
  ports   = ["9090:80"]
  ssh {
    enabled = false
  }
}
