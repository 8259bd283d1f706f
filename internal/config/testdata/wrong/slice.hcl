host "lab" { simulate = "1 x h200" }
session "form" {
  target = "1060"
  slice  = "MIG-41c2f0a8-90d6-5a3c-8a15-2f0d0b8f5a11"
}
session "whole" {
  target  = "1060"
  slice   = "2g.35gb"
  sharing = "exclusive"
}
session "turns" {
  target  = "1060"
  slice   = "MIG 1c.2g.35gb"
  sharing = "time-slice"
}
session "filled" {
  target  = "1060"
  slice   = "2g.35gb"
  sharing = "compute-instance"
}
session "part" {
  fraction = 0.3
  slice    = "2g.35gb"
}
session "several" {
  target = "1060"
  gpus   = 2
  slice  = "1c.2g.35gb"
}
session "devices" {
  target  = "1060"
  gpus    = 2
  sharing = "compute-instance"
}
