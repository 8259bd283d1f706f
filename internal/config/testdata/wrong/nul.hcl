session "worker" {
  target    = "rtx-2060"
  workspace = "a\u0000b"
  command   = ["python", "a\u0000b"]
  env       = { "A\u0000" = 1, B = "\u0000" }
}
