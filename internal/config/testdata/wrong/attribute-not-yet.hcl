session "worker" {
  image    = "cosplay:latest"
  target = "rtx-2060"
  for_each = { a = 1 }
  ttl      = "8h"
  
  volume {
    source = "/data"
  }
}
