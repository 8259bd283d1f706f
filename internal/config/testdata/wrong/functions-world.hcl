session "worker" {
  target  = "2060"
  command = ["echo", file("nothing.txt"), env("NOT"), templatefile("wrong.tftpl", {})]
  env     = { A = file(3 + "x"), B = flie("motd.txt"), C = timestamp(), D = base64decode("?") }
}
