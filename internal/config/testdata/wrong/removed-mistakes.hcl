session "a" {
  target = "2060"
}

removed {
  from = session.a
}

removed {
  destroy = false
}

removed {
  from    = session.b.image
  destroy = "perhaps"
}

removed {
  from    = session.c
  destroy = false
  lifecycle {
    destroy         = false
    prevent_destroy = true
  }
}

removed {
  from    = session.c[2]
  destroy = true
}

moved {
  from = session.d
  to   = session.e
}

removed {
  from = session.d
}

removed {
  from = session.e
}
