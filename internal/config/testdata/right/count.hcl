session "worker" {
  count     = "3"
  target    = ["rtx-2060", "rtx-3090"][count.index % 2]
  gpu       = "${count.index}"
  workspace = "./exp/${count.index}"
  command   = ["python", "train.py", "--seed", 10 + count.index]
  env       = { SEED = 10 + count.index, FAST = count.index > 0, NAME = format("run-%02d", count.index) }

  fit {
    tolerance = count.index / 10
  }
}

session "none" {
  count  = 0
  target = "rtx-2060"
}
