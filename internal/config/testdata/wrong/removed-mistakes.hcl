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
