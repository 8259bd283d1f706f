locals {
  a = $HOME
  b = ${local.c}
  c = "c"
}
