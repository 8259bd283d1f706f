host "one" {
  simulate = "1 x h200"
}

host "two" {
  simulate = "1 x h200"
  runtime  = "docker"
}

# A port is of its host.
session "worker" {
  count  = 2
  target = "rtx-2060"
  host   = ["one", "two"][count.index]

  ssh {
    port = 2200
  }
}
