session "worker" {
  target = "rtx-2060"

  ssh {
    authorized_keys = ["~/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----"]
  }
}
