session "worker" {
  count  = 2
  target = "2060"
}

output "ports" {
  value = session.worker[*].ssh_port
}

output "states" {
  value = session.worker.*.stat
}

output "other" {
  value = [{ a = 1 }][*].b
}
