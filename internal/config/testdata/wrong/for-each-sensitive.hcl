variable "tokens" {
  type      = map(string)
  sensitive = true
  default   = { a = "hunter2" }
}

session "a" {
  target = "2060"
  for_each = var.tokens
  env      = { TOKEN = each.value }
}
