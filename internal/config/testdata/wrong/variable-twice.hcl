variable "image" {
  default = "a"
}

variable "image" {
  default = "b"
}
