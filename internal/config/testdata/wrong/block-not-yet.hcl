cosplay {
  required_version = ">= 0.1"
}

output "ssh" {
  value = 1
}
