session "worker" {
  target = "rtx-2060"
  host   = var.host
  env    = { SEED = local.seeds[0], KEY = each.key }
}
