session "worker" {
  target = "rtx-2060"
  env = {
    ""    = 1
    "A=B" = 2
    "A B" = 3
    LIST  = [1]
    NONE  = null
  }
}
