session "worker" {
  target = "rtx-2060"

  ssh {
    authorized_keys = ["ada", 7, null, ["~/.ssh/id_ed25519.pub"]]
  }
}
