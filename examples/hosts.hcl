# A mixed fleet on two hosts, described by a table of targets and hosts. Both hosts are simulated, so this runs on
# any machine.

locals {
  fleet = {
    baseline = { target = "rtx-2060", host = "lab" }
    small    = { target = "gtx-1660", host = "attic" }
    large    = { target = "rtx-3090", host = "lab" }
    ada      = { target = "rtx-4060", host = "attic" }
  }
}

host "lab" {
  simulate = "1 x h200"
}

host "attic" {
  simulate = "2 x a100-80gb"
}

session "bench" {
  for_each = local.fleet

  target = each.value.target
  host   = each.value.host
  env    = { RUN = "bench-${each.key}" }
}
