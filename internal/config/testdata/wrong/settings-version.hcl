cosplay "x" {
  required_version = "newest"
}
