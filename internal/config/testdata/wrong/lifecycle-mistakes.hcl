session "a" {
  target = "2060"
  lifecycle {
    prevent_destroy      = "maybe"
    ignore_changes       = [image, "env", colour, env["A"], fit.tolerence]
    replace_triggered_by = [session.b, session.a, session.worker[7], session.worker.imaje, 1 + 2]
  }
}

session "worker" {
  count  = 2
  target = "2060"
  lifecycle {
    ignore_changes       = env
    replace_triggered_by = session.a
    create_before        = true
  }
}

session "alone" {
  target = "2060"
  lifecycle {
    replace_triggered_by = [session.worker, count.index]
  }
}

session "listed" {
  target     = "2060"
  depends_on = [alone, session.alone[0], session.lone]
  lifecycle {
    ignore_changes       = [all]
    replace_triggered_by = [local.none, session.allone, "session.alone", session.alone.imag]
  }
}
