variable "seeds" {
  type = list(numbr)
}

session "a" {
  target = "2060"
  env = { SEED = var.seeds[0] }
}
