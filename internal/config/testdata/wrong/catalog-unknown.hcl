variable "gpu" {
  default = "2600"
}

session "worker" {
  target = "2060"
  env    = { A = cosplay.catalog["2600"].vram_mib, B = cosplay.catalog[var.gpu].vram_mib }
}

session "other" {
  target  = "2060"
  env     = { C = cosplay.catalog["2060"].vram }
  command = ["echo", cosplay.catalogue["2060"].vram_mib, cosplay]
}

locals {
  of = [for key in ["2060", "20600"] : cosplay.catalog[key].sms]
}
