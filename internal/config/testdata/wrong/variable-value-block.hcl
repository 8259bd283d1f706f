variable "image" {
  type    = string
  default = "debian"
}
