variable "image" {
  type = string

  validation {
    condition     = startswith(var.image, "cosplay:")
    error_message = "Only images of our own."
  }
}
