host "lab" {
  simulate = "8 x h200"
  runtime  = "docker"
}

session "worker" {
  count   = 2
  target  = "rtx-2060"
  image   = "registry.example.com:5000/ada/train:1.${count.index}"
  pull    = "always"
  sudo    = false
  restart = "on-failure"

  volume {
    source    = "/data/../data/"
    target    = "/data/"
    read_only = true
  }
  volume {
    source = "./out/${count.index}"
    target = "/workspace/out"
  }
  volume {
    target = "/home/cache"
    source = "~/.cache"
  }
  volume {
    source = "pip-cache"
    target = "/cache"
  }

  ssh {
    port            = 2200 + count.index
    bind            = "0.0.0.0"
    authorized_keys = [
      "~/.ssh/id_ed25519.pub",
      "keys/eve.pub",
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpJxY82KA9xqD8OuF/blCF1HJW+LzEKljBmN8CwDY/5 ada@lab",
      "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBOs3MsNAX/hi8s0reSDP+b6FZXZl3DBZ/uSZKZdGMz2xI7Ut/p5+7J7nDlTbKYnJpaaaDp47fX8OY2q9ht9Q9yU=",
    ]
  }

  limits {
    cpus     = 0.5
    memory   = "32GiB"
    shm_size = "512 MiB"
    pids     = 4096
  }
}

# The same port as worker-0, but without ssh, so there is no conflict.
session "quiet" {
  target = "rtx-2060"

  ssh {
    enabled = false
    port    = 2200
  }
}

session "plain" {
  target = "rtx-2060"

  ssh {
    port = "auto"
    bind = "::1"
  }
}
