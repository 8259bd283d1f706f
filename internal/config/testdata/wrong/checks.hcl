session "worker" {
  count  = 2
  target = "2060"
}

check "no_message" {
  condition = session.worker[0].port > 0
}

check "no_condition" {
  error_message = "no"
}

check "nothing" {}

check "not_a_condition" {
  condition     = session.worker[0].name
  error_message = "no"
}

check "unknown" {
  assert {
    condition     = session.wrker[0].port > 0
    error_message = "no"
  }
  assert {
    condition = true
  }
}
