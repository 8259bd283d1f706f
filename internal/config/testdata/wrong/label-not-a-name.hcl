session "7 dwarfs" {
  target = "rtx-2060"
}

session "wörker" {
  target = "rtx-2060"
}

session "a-name-that-is-much-longer-than-any-container-could-ever-bear" {
  target = "rtx-2060"
}
