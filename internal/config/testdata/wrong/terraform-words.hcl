# Words of Terraform and Docker Compose instead of cosplay's.
variable "quoted" {
  type = "string"
}

variable "bare" {
  type = list
}

session "server" {
  target         = "2060"
  container_name = "server"
  environment    = { A = 1 }
  networks       = ["front"]
  volumes        = ["/a:/a"]
  entrypoint     = ["sh"]
}

session "worker" {
  target     = "2060"
  depends_on = [server]
  lifecycle {
    replace_triggered_by = [server]
  }
}

output "o" {
  value      = session.server.name
  depends_on = [session.server]
}
