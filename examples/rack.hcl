# A lab's three machines in one project, on a laptop: docs/rack.md. `ssh gpu1 true` must work without a question; in ~/.ssh/config
# also ControlMaster auto and ControlPersist 10m, by which all connections to a machine are one.
#
#     cosplay doctor                  # what each machine lacks
#     cosplay plan
#     cosplay ssh notebook-0

host "gpu1" {
  connect = "ssh://ada@gpu1"
}

host "gpu2" {
  connect = "ssh://ada@gpu2"
}

# Its admin shares the machine: two of its GPUs are ours, and their clocks stay as they are.
host "shared" {
  connect = "ssh://shared.example.org:2222"
  gpus    = [2, 3]
  manage  = ["slices", "mig-mode"]
}

# cosplay chooses the machine of each: where they need the fewest GPUs.
session "worker" {
  count  = 12
  target = "2060"
}

# Some only where the data is. The folder is on that machine.
session "notebook" {
  count  = 2
  hosts  = ["gpu1", "gpu2"]
  target = "3060"
  image  = "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"

  volume {
    source    = "/data/images"
    target    = "/data"
    read_only = true
  }
  ssh {
    enabled = true
  }
}
