# Addresses of other machines, and what cannot be there.
host "a" { connect = "gpu1" }
host "b" { connect = "ssh://ada@gpu1/home" }
host "c" { connect = "ssh://-oProxyCommand=x" }
host "d" { connect = "ssh://ada:secret@gpu1" }
host "e" { connect = "ssh://gpu1 -v" }
host "f" {
  connect = "ssh://ada@gpu1"
  runtime = "docker"
}
host "g" {
  connect  = "ssh://gpu1:2222"
  simulate = "lab.host.json"
}
host "h" {
  connect    = "ssh://gpu2"
  kubernetes = "cluster.json"
}
host "i" { connect = "ssh://ada@gpu3" }
host "j" { connect = "ssh://gpu3:22" }
host "k" { connect = "https://gpu1" }
host "l" { connect = "" }
