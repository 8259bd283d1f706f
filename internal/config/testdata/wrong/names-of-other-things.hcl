host "lab" {
  simulate = "1 x h200"
}

session "worker" {
  target = "2060"
  host   = host.lab
  env    = { HOME = env.HOME, A = env, B = cuont.index }
}
