# Of many names, the message lists a few.
locals {
  name10 = 10
  name11 = 11
  name12 = 12
  name13 = 13
  name14 = 14
  name15 = 15
  name16 = 16
  name17 = 17
  name18 = 18
  name19 = 19
  name20 = 20
  name21 = 21
  name22 = 22
  name23 = 23
  name24 = 24
  name25 = 25
  name26 = 26
  name27 = 27
  name28 = 28
  name29 = 29
  name30 = 30
}
session "worker" {
  target = "2060"
  env    = { A = nowhere.at, B = debian }
}
