variable "image" {
  type    = string
  default = "debian"

  validation {
    condition     = var.imag == "debian"
    error_message = "no"
  }
  validation {
    condition     = "debian"
    error_message = "no"
  }
}
