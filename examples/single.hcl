# One RTX 2060 on this machine's NVIDIA GPU.
#
#   cosplay plan --file single.hcl      shows what would happen, touches nothing
#   cosplay apply --file single.hcl     makes it so
#   cosplay destroy --file single.hcl   leaves the machine as it was found

session "worker" {
  target = "rtx-2060" # also: 2060, "RTX 2060"; cosplay ls lists all targets
}
