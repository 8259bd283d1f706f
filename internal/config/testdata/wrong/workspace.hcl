session "worker" {
  target    = "rtx-2060"
  workspace = ""
}

session "bob" {
  target    = "rtx-2060"
  workspace = "~bob/exp"
}
