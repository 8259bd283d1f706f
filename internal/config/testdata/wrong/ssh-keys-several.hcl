session "worker" {
  target = "rtx-2060"

  ssh {
    authorized_keys = ["ssh-ed25519 AAAA\nssh-ed25519 BBBB"]
  }
}
