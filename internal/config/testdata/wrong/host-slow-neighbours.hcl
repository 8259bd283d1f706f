host "lab" {
  slow_neighbours = "maybe"
}
