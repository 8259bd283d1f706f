session "worker" {
  sharing  = "mig"
  target = "rtx-2060"
  for_each = { a = 1 }
  ttl      = "8h"
  
  lifecycle {
    prevent_destroy = true
  }
}
