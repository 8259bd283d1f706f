locals {
  a = 1 + 2
  b = "x"
}
