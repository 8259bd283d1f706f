locals {
  hidden = sensitive(env("TOKEN"))
}

session "worker" {
  target = "2060"
  env = {
    A = tonumber(sensitive(env("TOKEN")))
    B = [for t in [env("TOKEN")] : parseint(sensitive(t), 10)][0]
    C = file("${sensitive(env("TOKEN"))}/x")
    D = trim(local.hidden)
    E = upper(local.hidden, local.hidden)
  }
}
