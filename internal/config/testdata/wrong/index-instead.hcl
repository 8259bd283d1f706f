locals {
  sizes  = { small = "2060", big = "3090" }
  one    = ["a"]
  none   = []
  hidden = sensitive({ correct = 1 })
  a      = local.sizes["bgi"]
  b      = local.one[1]
  c      = local.none[0]
  d      = local.sizes[0]
  e      = { for k, v in local.sizes : k => local.sizes["${k}s"] }
  f      = local.hidden["horse"]
  g      = local.sizes[sensitive("hunter2")]
  h      = tomap(local.sizes)["tiny"]
}
