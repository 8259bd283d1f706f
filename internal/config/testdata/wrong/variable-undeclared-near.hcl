variable "image" {
  default = "debian"
}

locals {
  seeds = [11, 12]
}

session "a" {
  target = "2060"
  image = var.imgae
  env   = { SEED = local.seed[0] }
}
