session "a" {
  env    = { A = “x”, B = `y` }
  target = "3090";
}

session 'b' {
  target = "2060"
}
