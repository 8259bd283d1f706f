session "worker" {
  target = "rtx-2060"

  volume {
    source = "data/set"
    target = "/a"
  }
  volume {
    source = ""
    target = "/b"
  }
  volume {
    source = "my volume"
    target = "/c"
  }
  volume {
    source = "~ada/data"
    target = "/d"
  }
  volume {
    source = "d"
    target = "/e"
  }
}
