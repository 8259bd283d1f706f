session "a" {
  target = '3090'
}
