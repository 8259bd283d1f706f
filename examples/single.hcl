# One RTX 2060 on this machine's NVIDIA GPU.
#
#   cosplay plan --file single.hcl      shows the changes, makes none
#   cosplay apply --file single.hcl     makes the changes
#   cosplay destroy --file single.hcl   restores the machine

session "worker" {
  target = "rtx-2060" # also: 2060, "RTX 2060"; cosplay ls lists all targets
}
