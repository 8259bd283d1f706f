# Seven RTX 2060 on one H200: seven people share one large GPU, and each gets a small one. The H200 is simulated, so
# this runs on any machine.

host "lab" {
  simulate = "1 x h200" # remove this line to use the GPUs of this machine
}

session "worker" {
  count  = 7
  target = "rtx-2060"

  # Sessions can differ by their index: 0, 1, 2, ...
  env = { SEED = 11 + count.index }
}
