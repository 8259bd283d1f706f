variable "image" {
  type = string
}

session "a" {
  target = "2060"
  image = var.image
}
