package config

// terraforms are the words of Terraform's that cosplay has no use for, each with
// what there is instead. Where one is written it is told so, instead of all that
// could be written.
var terraforms = map[string]string{
	"action":             "There are no actions. Remove it; cosplay exec runs programs in a session.",
	"backend":            "The state is a file. Say where it lies with: cosplay { state = \"../fleet.state.json\" }",
	"cloud":              "The state is a file. Say where it lies with: cosplay { state = \"../fleet.state.json\" }",
	"connection":         "cosplay ssh logs in by itself. Remove it; who may log in, and where, goes into an ssh block.",
	"data":               "There are no data sources. Remove it; file(...), env(...) and cosplay.catalog[\"3090\"] tell what is there already.",
	"depends_on":         "Sessions alone depend on others; the rest is worked out once they are there. Leave it out.",
	"dynamic":            "Blocks cannot be made by an expression. Write each one out; its attributes can be expressions, also with each.value and count.index.",
	"ephemeral":          "Nothing is ephemeral. Leave it out; a variable with sensitive = true is shown and kept nowhere.",
	"module":             "There are no modules. Put the blocks into this folder, of which every *.hcl file is read; for_each makes many sessions of one block.",
	"postcondition":      "What has to be true of sessions is said in a check block. Write: check \"NAME\" { condition = ... }",
	"precondition":       "What has to be true of variables is said in their validation block, and of sessions in a check block. Write one of these instead.",
	"provider":           "There are no providers. Remove it; the machine is described in a host block, without which it is this one.",
	"provisioner":        "There are no provisioners. Remove it; the program of a session is its command, and what it needs is in its image.",
	"required_providers": "There are no providers. Remove it; the machine is described in a host block, without which it is this one.",
	"resource":           "There is one kind of resource, the session. Write: session \"worker\" { target = \"rtx-2060\" }",
	"terraform":          "What a project asks of cosplay itself is in a cosplay block. Write: cosplay { required_version = \">= 0.1\" }",

	"create_before_destroy": "A session that is replaced gives its slice to the one that takes its place, so it goes first. Leave it out.",
}

// composes are the words of Docker, Compose and Kubernetes, likewise.
var composes = map[string]string{
	"args":           "The program and its arguments are one list. Write: command = [\"python\", \"train.py\"]",
	"cmd":            "The program of a session is its command. Write: command = [\"python\", \"train.py\"]",
	"deploy":         "How many sessions there are is count. Write: count = 2",
	"container_name": "A container is called after its session, whose name is behind the word session. Leave it out.",
	"entrypoint":     "The program of a session is its command. Write: command = [\"python\", \"train.py\"]",
	"environment":    "The environment is in env. Write: env = { SEED = 11 }",
	"labels":         "cosplay labels its containers itself. Leave it out.",
	"mem_limit":      "Memory has a limit in a block. Write: limits { memory = \"32GiB\" }",
	"mounts":         mountsAreBlocks,
	"ports":          "Ports are not published. Leave it out; ssh -L reaches those of a session, by the names of cosplay ssh-config.",
	"replicas":       "How many sessions there are is count. Write: count = 2",
	"restart_policy": "It is called restart. Write: restart = \"no\"",
	"user":           "In a session one is the user that one is outside, with the same name and number. Leave it out.",
	"volumes":        mountsAreBlocks,
	"working_dir":    "A session's folder is its workspace, at /workspace. Write: workspace = \"./exp\"",
}

const mountsAreBlocks = "Each volume is a block. Write: volume { source = \"./data\", target = \"/data\" }, each on a line of its own."

// terraformValues are the same for names that expressions mention.
var terraformValues = map[string]string{
	"data":      terraforms["data"],
	"module":    terraforms["module"],
	"resource":  "What sessions turn out to be can be mentioned in output and check blocks. Write session.worker without resource before it.",
	"self":      "A block cannot mention what it is about. Write the value itself, or put it into a local that both can mention.",
	"terraform": "There are no workspaces. Write a variable instead, and give each workspace a folder, or a state of its own with --state.",
}

// terraformFunctions are the functions of Terraform's that there are not.
var terraformFunctions = map[string]string{
	"base64gzip":       notHere,
	"bcrypt":           notTwice,
	"cidrhost":         notHere,
	"cidrnetmask":      notHere,
	"cidrsubnet":       notHere,
	"cidrsubnets":      notHere,
	"convert":          notHere,
	"ephemeralasnull":  "Nothing is ephemeral. Write the value itself.",
	"list":             "A list is written in brackets. Write: [a, b]",
	"map":              "A map is written in braces. Write: { name = value }",
	"plantimestamp":    notTwice,
	"rsadecrypt":       notHere,
	"templatestring":   "Write the template itself, in quotes or as a heredoc, or put it into a file for templatefile(...).",
	"textdecodebase64": notHere,
	"textencodebase64": notHere,
	"timecmp":          notHere,
	"timestamp":        notTwice,
	"type":             notHere,
	"uuid":             notTwice,
	"uuidv5":           notHere,
}

const notHere = "This one of Terraform's is not part of cosplay. Write it in another way, or put its result into a variable."

const notTwice = "What it gives would be another with each plan, and replace sessions each time. Put the value into a variable, or let the session's command work it out."
