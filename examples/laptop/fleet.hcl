# Which of the cards that its users own does a training fit? On a machine without a GPU PyTorch computes on the CPU, and
# runs out of memory where each card would. It needs PyTorch, and no Docker.
#
#   cosplay apply --auto-approve
#   cosplay exec 'card["2060"]' -- python3 train.py
#   cosplay report
#   cosplay destroy --auto-approve
#
# The smallest card of the catalog, and what took the memory, without this file; with --need 2060 as a check for a CI system (github.yml,
# gitlab.yml):
#
#   cosplay fits -- python3 train.py

host "lab" {
  simulate = "3 x h200"
}

session "card" {
  for_each = toset(["1650", "2060", "3090"])
  target   = each.value
}
