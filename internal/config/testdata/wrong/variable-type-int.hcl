variable "n" {
  type    = int
  default = 1
}

variable "t" {
  type = Str
}

variable "f" {
  type = list(float)
}
