session "worker" {
  count      = 2
  target     = "2060"
  depends_on = [session.server, session.data]
}

session "server" {
  target     = "2060"
  depends_on = [session.data]
}

session "data" {
  for_each = toset(["a"])
  target   = "2060"
}
