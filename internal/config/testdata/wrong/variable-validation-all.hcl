# Every rule that fails is reported.
variable "name" {
  default = ""

  validation {
    condition     = length(var.name) > 2
    error_message = "it has three letters at least"
  }
  validation {
    condition     = var.name == "" || length(var.name) > 1
    error_message = "this one is obeyed"
  }
  validation {
    condition     = can(regex("^[a-z]", var.name))
    error_message = "it starts with a letter"
  }
}
