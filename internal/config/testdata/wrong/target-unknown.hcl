session "worker" {
  target = "2600"
}
