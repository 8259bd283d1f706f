session "server" {
  target = "2060"
  lifecycle {
    prevent_destroy = true
    ignore_changes  = all
  }
}

session "worker" {
  count  = 2
  target = "2060"
  lifecycle {
    prevent_destroy      = count.index == 0
    ignore_changes       = [env["A"], fit, ssh.port]
    replace_triggered_by = [session.server, session.one.image, session.data[count.index].env, path.module, { a = [1, true] }]
  }
}

session "one" {
  target = "2060"
}

session "data" {
  count  = 2
  target = "2060"
}

moved {
  from = session.old
  to   = session.one
}

moved {
  from = session.older
  to   = session.old
}

moved {
  from = session.worker["a"]
  to   = session.worker[1]
}

removed {
  from    = session.gone[3]
  destroy = false
}

removed {
  from = session.away
  lifecycle {
    destroy = false
  }
}

import {
  to = session.one
  id = "cosplay-${path.module}"
}
