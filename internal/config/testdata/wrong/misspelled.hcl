# A misspelled attribute is not also reported as missing.
session "a" {
  traget = "2060"
  volume {
    sourc  = "/a"
    target = "/a"
  }
}

session "b" {
  target {}
}

target "small" {
  bas = "2060"
}

variable "n" {
  default = 1
  validation {
    condition     = true
    error_mesage  = "no"
  }
}

output "o" {
  valeu = 1
}

check "c" {
  condition      = true
  error_messages = "no"
}

check "d" {
  conditon      = true
  error_message = "no"
}

moved {
  form = session.x
  to   = session.a
}

import {
  to  = session.a
  iid = "x"
}

removed {
  fron = session.y
}
