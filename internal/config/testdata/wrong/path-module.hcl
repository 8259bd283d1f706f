session "worker" {
  target    = "rtx-2060"
  workspace = "${path.modul}/exp"
}
