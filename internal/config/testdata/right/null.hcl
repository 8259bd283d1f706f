# null is as if the attribute were left out.
variable "image" {
  type    = string
  default = null
}

variable "limits" {
  type    = object({ cpus = number, memory = string })
  default = null
}

locals {
  fleet = {
    a = { port = null, command = ["sleep"] }
    b = { port = 2201, command = null }
  }
}

host "lab" {
  simulate       = "1 x h200"
  nvml           = null
  baseline_clock = null
  gpus           = null
}

target "card" {
  base        = "rtx-3090"
  vram        = null
  fp32_tflops = null
  sms         = 41
}

session "a" {
  for_each  = local.fleet
  target    = "card"
  host      = each.key == "a" ? "lab" : null
  image     = var.image
  workspace = null
  command   = each.value.command
  env       = null
  sudo      = null

  ssh {
    port = each.value.port
    bind = each.key == "a" ? "0.0.0.0" : null
  }
  limits {
    cpus   = try(var.limits.cpus, null)
    memory = var.limits == null ? null : var.limits.memory
  }
  fit {
    max_error = null
  }
  volume {
    source    = "./data"
    target    = "/data"
    read_only = null
  }
}
