session {
  target = "rtx-2060"
}

host {
}
