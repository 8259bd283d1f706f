variable "token" {
  type      = string
  default   = "hunter2"
  sensitive = true
}

locals {
  number = parseint(var.token, 10)
  other  = { a = 1 }[var.token]
}
