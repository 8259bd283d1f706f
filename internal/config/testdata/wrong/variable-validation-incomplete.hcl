variable "image" {
  type    = string
  default = "debian"

  validation {
    condition = length(var.image) > 0
  }
}
