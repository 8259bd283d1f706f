variable "image" {
  type     = string
  nullable = false
}
