session "a" {
  target = "2060"
}

import {
  to = session.b
  id = "MIG-1"
}

import {
  to = session.a
  id = ["MIG-2"]
}

import {
  to = session.a
}

import {
  to = session.a
  id = "one"
}

import {
  to = session.a
  id = "two"
}

import "x" {
  to = "a"
  id = var.none
}

import {
  to = session.a
  id = " "
}

import {
  to = "session.a"
  id = true
}
