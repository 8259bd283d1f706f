# A fleet that differs by branch: each branch has its own files of values, and this
# file is the same in all branches.
#
#   cosplay plan                                  with cosplay.hclvars
#   cosplay plan --var-file large.hclvars         an experiment with its own values
#   cosplay plan --var seeds='[1,2,3]'            a value for this plan only

variable "target" {
  type        = string
  description = "GPU that every worker presents"
}

variable "seeds" {
  type        = list(number)
  description = "one worker for each"

  validation {
    condition     = length(var.seeds) > 0
    error_message = "without a seed there is no worker"
  }
}

variable "branch" {
  type    = string
  default = "main"
}

host "lab" {
  simulate = "1 x h200"
}

session "worker" {
  for_each = toset([for seed in var.seeds : tostring(seed)])

  target = var.target
  env    = { SEED = each.key, BRANCH = var.branch }
}
