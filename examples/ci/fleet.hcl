# One session for a job of continuous integration. The token comes from the job's
# secrets, as COSPLAY_VAR_token. No plan, state, log or comment on a pull request
# contains it.
#
#   cosplay fmt --check --recursive
#   cosplay validate
#   cosplay plan --markdown >> comment.md
#   cosplay apply --auto-approve
#   cosplay exec -- ./run-tests
#   cosplay destroy --auto-approve

variable "token" {
  type        = string
  sensitive   = true
  description = "for fetching the model under test"
}

variable "commit" {
  type    = string
  default = "HEAD"
}

host "lab" {
  simulate = "1 x h200"
}

session "job" {
  target = "rtx-2060"
  env = {
    TOKEN  = var.token
    COMMIT = var.commit
  }
}
