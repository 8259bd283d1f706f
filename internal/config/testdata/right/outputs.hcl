cosplay {
  required_version = ">= 0.1, < 2.0"
  state            = "fleet.state.json"
}

variable "token" {
  default   = "hunter2"
  sensitive = true
}

session "worker" {
  count  = 2
  target = "2060"
}

session "big" {
  for_each = toset(["a", "b"])
  target   = "3090"
}

session "single" {
  target = "2060"
}

session "none" {
  count  = 0
  target = "2060"
}

output "ssh" {
  value       = [for s in session.worker : s.ssh_command]
  description = "how to log in"
}

output "gpus" {
  value = { for k, s in session.big : k => "${s.gpu}/${s.slice}" }
}

output "first" {
  value = session.worker[0].fit.fp32_error
}

output "token" {
  value     = "x-${var.token}"
  sensitive = true
}

output "mixed" {
  value = [session.single.name, length(session.none), one(session.none[*].port), session.worker[*].port]
}

check "fast_enough" {
  condition     = session.worker[0].fit.fp32_error < 0.1
  error_message = "the workers are ${session.worker[0].fit.fp32_error} off"
}

check "all" {
  assert {
    condition     = alltrue([for s in session.big : s.vram_mib > 10000])
    error_message = "too little memory"
  }
  assert {
    condition     = var.token != "hunter2"
    error_message = "the token ${var.token} is a bad one"
  }
}
