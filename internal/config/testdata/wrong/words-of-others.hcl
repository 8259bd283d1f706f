session "worker" {
  target     = "2060"
  enviroment = { A = 1 }
  memroy     = "1GiB"
  replica    = 2
  cmd        = ["a"]
  mounts     = ["/a:/b"]
  tolerance  = "5%"
  deploy {}
  xyz = 1
}

output "a b" {
  value = 1
}
