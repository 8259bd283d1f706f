# Eight RTX 2060: one more than a single H200 has slices for. cosplay places
# them on both GPUs.

host "lab" {
  simulate = "2 x h200"
}

session "worker" {
  count  = 8
  target = "rtx-2060"
}
