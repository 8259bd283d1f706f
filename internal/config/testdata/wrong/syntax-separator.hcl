session "a" {
  target = "3090"
  env = {
    A = 1 B = 2
  }
}
