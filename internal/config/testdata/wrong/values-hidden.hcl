variable "token" {
  sensitive = true
}
variable "image" {
  default = "x"
}
