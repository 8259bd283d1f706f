session "worker" {
  target = ["rtx-2060"]
}

session "truth" {
  target = true
}
