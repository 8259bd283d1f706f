# The rules of a wrong variable are checked, too.
variable "a" {
  type      = list(strng)
  sensitive = "perhaps"
  default   = 7

  validation {
    condition     = length(var.b) > 0
    error_message = "no ${local.none}"
  }
}

variable "c" {
  type     = object({ d = optional(number, "e") })
  nullable = 1
  default  = []
}

variable "f" {
  type        = number
  default     = "hunter2"
  sensitive   = "perhaps"
  description = []
}
