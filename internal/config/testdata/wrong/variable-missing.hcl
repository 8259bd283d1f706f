variable "image" {
  type        = string
  description = "image of every worker"
}

session "a" {
  target = "2060"
  image  = var.image
  env    = { IMAGE = var.image }
}
