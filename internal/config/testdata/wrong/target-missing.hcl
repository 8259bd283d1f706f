session "worker" {
  count = 7
}
