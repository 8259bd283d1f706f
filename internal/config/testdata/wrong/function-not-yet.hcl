session "worker" {
  target = "rtx-2060"
  env    = { KEY = file("key.txt"), USER = env("USER") }
}
