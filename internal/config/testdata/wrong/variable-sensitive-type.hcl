variable "port" {
  type      = number
  sensitive = true
}

session "a" {
  target = "2060"
  ssh {
    port = var.port
  }
}
