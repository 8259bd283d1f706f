locals {
  a = local.a + 1
}
