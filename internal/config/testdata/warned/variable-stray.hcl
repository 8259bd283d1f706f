variable "image" {
  default = "debian"
}

session "a" {
  target = "2060"
  image = var.image
}
