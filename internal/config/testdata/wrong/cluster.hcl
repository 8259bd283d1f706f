host "a" {
  kubernetes = "cluster.json"
  simulate   = "1 x h200"
  manage     = []
}
host "b" {
  kubernetes = "other.json"
  namespace  = "Lab"
}
host "c" {
  simulate  = "1 x h200"
  namespace = "lab"
}
session "worker" {
  host   = "b"
  target = "2060"
}
output "slice" {
  value = session.worker.slice
}
import {
  to = session.worker
  id = "x"
}
