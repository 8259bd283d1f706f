session "worker" {
  sharing  = "mig"
  target = "rtx-2060"
  ttl      = "8h"
  
  lifecycle {
    prevent_destroy = true
  }
}
