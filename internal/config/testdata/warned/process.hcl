host "lab" {
  simulate = "8 x h200"
  runtime  = "process"
}

host "docks" {
  simulate = "8 x h100"
  runtime  = "docker"
}

# Each unused word gives one warning, not one for each instance. Two sessions can have the same port if ssh is off.
session "worker" {
  count   = 7
  target  = "rtx-2060"
  host    = "lab"
  image   = "cosplay:latest"
  pull    = "never"
  sudo    = true
  restart = "always"

  volume {
    source = "/data"
    target = "/data"
  }
  volume {
    source = "/other"
    target = "/other"
  }
  ssh {
    port = 2200
  }
  limits {
    cpus = 4
  }
}

# Only the instance on the host with the process runtime gives warnings.
session "mixed" {
  count  = 2
  target = "rtx-2060"
  host   = ["lab", "docks"][count.index]
  pull   = "never"
}
