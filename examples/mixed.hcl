# Four different GPUs on one simulated H200. Each session gets the smallest
# slice that comes close enough to its target.

host "lab" {
  simulate = "1 x h200"
}

session "big" {
  target = "rtx-3090"

  fit {
    tolerance = "10%" # how far off the speed may be for the sake of a smaller slice
  }
}

session "middle" {
  count  = 2
  target = "rtx-3060"
}

session "small" {
  target = "gtx-1660"
}
