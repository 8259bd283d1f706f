session "a" {
  target = "2060"
  for_each = toset(["", "a"])
}

session "b" {
  target   = "2060"
  for_each = { "${join("", [for i in range(101) : "x"])}" = 1, "a\nb" = 2 }
}
