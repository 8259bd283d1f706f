variable "image" {
  defualt = "debian"
}
