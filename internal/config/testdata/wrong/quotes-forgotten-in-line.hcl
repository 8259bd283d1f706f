host "lab" { simulate = 4 x h200 }
