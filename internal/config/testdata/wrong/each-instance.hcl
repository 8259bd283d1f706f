session "worker" {
  count  = 4
  target = count.index < 2 ? "rtx-2060" : "rtx-206${count.index}"
  env    = { "A=${count.index}" = 1 }
  gpu    = count.index - 1
}
