locals {
  seeds = [1, 2]
  third = local.seeds[2]
  text  = upper(local.seeds)
}
