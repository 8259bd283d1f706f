variable "image" {
  default = "debian"
}

session "a" {
  target = "2060"
  env = { for k, v in var : k => v }
}
