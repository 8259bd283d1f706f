session "worker" {
  count  = 2
  target = "2060"
}

session "one" { target = "2060" }

session "each" {
  for_each = toset(["a", "b"])
  target   = element(["2060"], each.key)
}

session "listed" {
  count  = 4
  target = ["2060", "3060"][count.index]
}

output "list" { value = session.worker.name }
output "index" { value = session.one[0].name }
output "beyond" { value = session.worker[5].name }
output "key" { value = session.each["c"].name }
output "legacy" { value = session.worker.0.nam }
output "bare" { value = worker[0].name }
output "splat" { value = session.worker[*].fit.fp32_eror }
output "unknown" { value = session.worker[*].fit.clock_mhz.unit }
