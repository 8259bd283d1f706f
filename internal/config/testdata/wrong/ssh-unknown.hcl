session "worker" {
  target = "rtx-2060"

  ssh {
    prot  = 2200
    shell = "zsh"
  }
}
