host "local" {
  baseline_clock = 0
}

