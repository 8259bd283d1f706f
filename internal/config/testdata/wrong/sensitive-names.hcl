variable "token" {
  type      = string
  default   = "hunter2"
  sensitive = true
}

session "a" {
  target = "2060"
  env    = { (var.token) = 1 }

  lifecycle {
    replace_triggered_by = [var.token]
  }
}

session "b" {
  target = "2060"
  env    = { A = [var.token] }
}
