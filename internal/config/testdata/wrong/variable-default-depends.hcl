variable "a" {
  default = 1
}

variable "b" {
  default = var.a + 1
}
