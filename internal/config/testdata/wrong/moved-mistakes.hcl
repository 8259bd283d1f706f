session "a" {
  target = "2060"
  count  = 2
}

moved {
  from = "a"
  to   = session.b
}

moved {
  from = session.a
  to   = session.c
}

moved {
  from = session.d[0].image
  to   = session.d[-1]
}

moved {
  from = session.e
  to   = session.e
}

moved {
  to = session
}

moved {
  from = session.a[1]
  to   = session.f
}

moved "x" {
  from = session.g[*]
  to   = local.g
}
