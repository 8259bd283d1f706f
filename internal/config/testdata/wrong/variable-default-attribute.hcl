variable "box" {
  type    = object({ pids = number })
  default = { pids = "many" }
}
