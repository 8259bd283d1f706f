session "worker" {
  target = "2060"
}

check "condition" {
  condition = session.worker.nope > 1
}

check "message" {
  error_message = "no ${session.none}"
}

check "asserts" {
  assert {
    condition = session.worker.vram_mib
  }
}

variable "a" {
  default = 1
  validation {
    condition = var.b
  }
  validation {
    error_message = "no ${local.none}"
  }
}
