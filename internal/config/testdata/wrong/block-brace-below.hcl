session "worker"
{
  target = "2060"
}
