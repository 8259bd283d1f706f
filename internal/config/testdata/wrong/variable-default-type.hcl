variable "seeds" {
  type    = list(number)
  default = ["eleven"]
}

session "a" {
  target = "2060"
  env = { SEED = var.seeds[0] }
}
