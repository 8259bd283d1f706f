session "worker" {
  target    = lower(join("-", ["RTX", 2060]))
  workspace = "${path.module}/${replace("a.b", "/[.]/", "-")}"
  command   = concat(["python"], [for i in range(3) : "step-${i}"])

  env = merge(
    { for k in ["a", "b"] : upper(k) => length(k) },
    { LONG = length([1, 2, 3]), SAFE = try(tonumber("x"), "no"), SORTED = jsonencode(sort(["b", "a"])) },
  )
}
