variable "token" {
  type      = string
  default   = "hunter2"
  sensitive = true
}

session "a" {
  target = "2060"
  image   = "debian:${var.token}"
  command = ["run", var.token]
  count   = length(var.token)
}
