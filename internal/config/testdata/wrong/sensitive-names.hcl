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

variable "tokens" {
  type      = set(string)
  default   = ["correct-horse"]
  sensitive = true
}

locals {
  used   = { for t in var.tokens : t => 1 }
  nested = { pin = sensitive([7]) }
}

session "c" {
  target = "2060"
  env    = { for t in var.tokens : "USES_${upper(t)}" => 1 }
}

session "d" {
  target = "2060"
  env    = local.used
}

session "e" {
  for_each = { a = local.used }
  target   = "2060"
  env      = each.value
}

session "f" {
  target = "2060"
  env    = zipmap(local.nested.pin, ["x"])
}
