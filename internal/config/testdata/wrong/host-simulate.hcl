host "lab" {
  simulate = "8 h200"
}
host "flag" {
  simulate = true
}
host "list" {
  simulate = ["h200"]
}
