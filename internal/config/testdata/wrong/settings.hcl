cosplay {
  required_version = ">= 1.0"
  state            = var.path
}

cosplay {
  required_versoin = "1"
}

variable "path" {
  default = "x"
}
