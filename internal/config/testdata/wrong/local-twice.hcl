locals {
  seeds = [1]
}

locals {
  seeds = [2]
}
