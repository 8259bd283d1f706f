variable "image" {
  default = "cosplay:latest"
}

locals {
  seeds = [11, 12]
}

output "ssh" {
  value = 1
}
