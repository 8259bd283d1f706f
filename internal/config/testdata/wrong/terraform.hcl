# Words of Terraform for which cosplay has an equivalent.
terraform {
  backend "local" {}
  required_providers {}
}

provider "aws" {
  region = "eu-central-1"
}

resource "aws_instance" "worker" {
  ami = "ami-1"
}

data "aws_ami" "ubuntu" {}

module "fleet" {
  source = "./fleet"
}

ephemeral "random_password" "p" {}

cosplay {
  backend "s3" {}
}

session "worker" {
  provider = aws.west
  target   = data.aws_ami.ubuntu.id
  image    = "worker:${terraform.workspace}"
  command  = ["run", self.name]
  env      = { A = module.fleet.name }

  dynamic "volume" {
    for_each = ["/a"]
    content {
      source = volume.value
      target = volume.value
    }
  }
  provisioner "local-exec" {
    command = "echo"
  }
  connection {
    host = "x"
  }
  lifecycle {
    create_before_destroy = true
    precondition {
      condition     = true
      error_message = "no"
    }
  }
}

output "worker" {
  value = resource.session.worker.name
}
