variable "image" {
  type     = string
  nullable = false
  default  = null
}
