host "lab" {
  simulate = "1 x h200"
  dynamic "volume" { for_each = [] }
}

variable "secret" {
  default   = ["x"]
  sensitive = true
}

session "a" {
  target = "rtx-2060"
  dynamic "volumes" {
    for_each = []
    content {}
  }
  dynamic "volume" {
    for_each = ["data"]
    content {
      source = volume.valeu
      target = volume.value
      mode   = "ro"
    }
  }
  dynamic "volume" {
    for_each = { a = "data" }
    content {
      source = "/mnt"
      target = volume.value
    }
  }
  dynamic "volume" {
    for_each = "data"
    content {
      source = volume.value
      target = "/data"
    }
  }
  dynamic "volume" {
    for_each = var.secret
    content {
      source = volume.value
    }
  }
  dynamic "ssh" {
    for_each = [1, 2]
    content { port = 2200 }
  }
  dynamic "limits" {
    for_each = [1]
    iterator = each
    content { cpus = 1 }
  }
  dynamic "fit" { for_each = [1] }
  dynamic "lifecycle" {
    for_each = [1]
    content { prevent_destroy = true }
  }
}

import {
  for_each = { a = "MIG-1" }
  to       = session.a[each.kye]
  id       = each.value
}

import {
  to = session.a[each.key]
  id = "MIG-2"
}

import {
  for_each = ["MIG-1"]
  to       = session.a
  id       = each.value
}
