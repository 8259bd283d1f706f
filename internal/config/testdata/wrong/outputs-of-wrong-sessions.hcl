session "worker" {
  count  = "many"
  target = "2060"
}

session "other" {
  for_each = 3
  target   = "2060"
}

output "a" {
  value = [session.worker[3].name, session.other["x"].name]
}
