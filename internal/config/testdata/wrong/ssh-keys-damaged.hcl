session "worker" {
  target = "rtx-2060"

  ssh {
    authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpJxY82KA9x ada", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIOpJxY82KA9xqD8OuF/blCF1HJW+LzEKljBmN8CwDY/5", "ssh-ed25519 AAAA..."]
  }
}
