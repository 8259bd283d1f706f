variable "image" {
  type        = string
  default     = "cosplay:latest"
  description = "image of every worker"
}

variable "fleet" {
  type = map(object({
    target = string
    seed   = optional(number, 7)
  }))
}

variable "mode" {
  default  = "train"
  nullable = false

  validation {
    condition     = contains(["train", "test"], var.mode)
    error_message = "It is train or test."
  }
}

locals {
  tag   = "${local.names[0]}-${var.mode}"
  names = sort(keys(var.fleet))
  twice = { for name, gpu in var.fleet : name => gpu.seed * 2 }
}

session "worker" {
  for_each  = var.fleet
  target    = each.value.target
  image     = var.image
  workspace = "./exp/${each.key}"
  env       = { SEED = each.value.seed, TWICE = local.twice[each.key], TAG = local.tag }
}

session "twin" {
  for_each = toset(local.names)
  target   = "rtx-2060"
  command  = ["echo", each.key, each.value]
}

session "none" {
  for_each = {}
  target   = "rtx-2060"
}
