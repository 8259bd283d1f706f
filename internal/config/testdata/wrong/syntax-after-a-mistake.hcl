session "worker" {
  target = "2600"
}

session "worker" {
  target = 
}
