variable "workers" {
  type = number
}

variable "fleet" {
  type = map(object({ target = string, gpu = optional(number) }))
}

session "a" {
  target = "2060"
  count = var.workers
}
