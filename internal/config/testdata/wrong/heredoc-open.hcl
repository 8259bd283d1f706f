session "worker" {
  target = "2060"
  image  = <<-EOT
    debian
  command = ["x"]
}
