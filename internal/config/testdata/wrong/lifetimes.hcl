session "worker" {
  target       = "rtx-2060"
  ttl          = "8 hours"
  idle_timeout = 120
  stop_at      = "2026-12-01 18:00"
}

session "other" {
  count        = 2
  target       = "rtx-2060"
  ttl          = "0h"
  idle_timeout = "1d12h${count.index}"
  stop_at      = "2026-02-30T18:00:00Z"
}
