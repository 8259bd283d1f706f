session "worker" {
  target    = null
  workspace = null
  command   = ["python", null]
  env       = null
}
