session {
  target = 2060
}
session "a" {
  target "x" {}
  volume = "./data"
  env {
    A = "x"
  }
  command = var.cmd
  host    = "lab"
}
output "o" {
  value = session.zzzz.ssh_command
}
