variable "workers" {
  type    = number
  default = 9

  validation {
    condition     = var.workers < 8
    error_message = "an H200 has room for seven, not for ${var.workers}"
  }
}

session "a" {
  target = "2060"
  count = var.workers
}
