session "worker" {
  slice  = "1g.18gb"
  target = "rtx-2060"
  
  lifecycle {
    prevent_destroy = true
  }
}
