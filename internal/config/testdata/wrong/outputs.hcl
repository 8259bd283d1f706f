variable "token" {
  default   = "hunter2"
  sensitive = true
}

session "worker" {
  count  = 2
  target = "2060"
  env    = { OTHER = session.worker[0].name }
}

output "a" {
  value = session.worker[2].name
}

output "b" {
  value = session.wroker[0].name
}

output "c" {
  value = session.worker[0].nmae
}

output "d" {
  value = session
}

output "e" {
  value = var.token
}

output "f" {
  description = "nothing"
}

output "g" {
  value     = 1
  sensitive = "perhaps"
  colour    = "green"
}

output "a" {
  value = 1
}

output "h" {
  value = session.worker[0].fit.fp32_eror
}

output "i" {
  value = count.index
}
