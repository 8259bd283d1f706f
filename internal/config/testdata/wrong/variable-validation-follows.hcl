# A value that depends on a variable with a failed rule is not also reported as wrong.
variable "fleet" {
  type    = map(object({ gpu = string, env = optional(map(string), {}), port = optional(number) }))
  default = { a = { gpu = "2060" } }

  validation {
    condition     = length(var.fleet) > 1
    error_message = "at least two"
  }
}

session "worker" {
  for_each = var.fleet
  target   = each.value.gpu
  env      = merge({ NAME = each.key }, each.value.env)

  ssh {
    port = try(each.value.port, "auto")
  }
}
