session "d" {
  target = "2060"
}

moved {
  from = session.a
  to   = session.b
}

moved {
  from = session.b
  to   = session.c
}

moved {
  from = session.c
  to   = session.a
}

moved {
  from = session.x
  to   = session.c
}

moved {
  from = session.x
  to   = session.y
}
