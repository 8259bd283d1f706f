# Variables without a value hide no mistake that can be found without it.
variable "name" { type = string }
variable "many" { type = list(string) }
variable "fleet" { type = map(object({ gpu = string, sizes = list(number) })) }
variable "any" {}
variable "n" {
  type = number
  validation {
    condition     = [var.n]
    error_message = "no"
  }
}

host "lab" { simulate = "${var.name}${var.nowhere}" }

session "list" {
  target = var.many
  image  = "${var.name}:latest"
  sudo   = var.n
  env    = var.many
  fit {
    tolerance = var.many
    prefer    = "speed"
  }
}

session "wrong_target" {
  count   = var.n
  target  = "2061"
  command = var.name
  env     = { A = var.many, B = var.any }
}

session "elements" {
  for_each  = var.many
  target    = each.value
  workspace = "./${each.key}/${count.index}"
}

session "objects" {
  for_each = var.fleet
  target   = each.value.gpus
  gpu      = each.value.sizes
  limits {
    cpus   = each.value.sizes
    memory = var.any
  }
  depends_on = [session.elements, session.absent]
  lifecycle {
    replace_triggered_by = [session.elements[var.name], session.wrong_targets[0], var.any]
  }
}

import {
  to = session.objetcs["a"]
  id = var.name
}

output "names" { value = [for s in session.objets : s.name] }

check "c" {
  condition     = var.many
  error_message = "is ${var.name}"
}
