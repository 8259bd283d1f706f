session "a" {
  target     = "2060"
  depends_on = [session.b]
}

session "b" {
  target     = "2060"
  depends_on = [session.c, session.c]
}

session "c" {
  target     = "2060"
  depends_on = [session.a]
}

session "d" {
  count      = 2
  target     = "2060"
  depends_on = [session.d, session.ee]
}

session "f" {
  target     = "2060"
  depends_on = [session.a[0], session.a.image, "a"]
}

session "g" {
  target     = "2060"
  depends_on = [host.lab]
}

session "e" {
  target     = "2060"
  depends_on = session.a
}
