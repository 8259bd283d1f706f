session "worker" {
  target = "rtx-2060"
  command = "python train.py"
}

session "empty" {
  target = "rtx-2060"
  command = []
}

session "nameless" {
  target = "rtx-2060"
  command = ["", "x"]
}

session "nested" {
  target = "rtx-2060"
  command = ["python", ["train.py"]]
}
