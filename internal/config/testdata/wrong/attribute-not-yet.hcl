session "worker" {
  cap    = "8GB"
  target = "rtx-2060"
  
  lifecycle {
    prevent_destroy = true
  }
}
