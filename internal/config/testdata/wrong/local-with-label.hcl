locals "seeds" {
  a = 1
}
