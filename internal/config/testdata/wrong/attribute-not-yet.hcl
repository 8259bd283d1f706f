session "worker" {
  sharing  = "mig"
  target = "rtx-2060"
  
  lifecycle {
    prevent_destroy = true
  }
}
