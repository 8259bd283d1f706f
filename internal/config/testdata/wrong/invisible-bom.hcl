locals {
  ﻿a = 1
}
