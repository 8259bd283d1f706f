host "lab" {
}

host "local" {
}
