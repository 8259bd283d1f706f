# What depends on a variable that breaks a rule is not told as wrong, too.
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
