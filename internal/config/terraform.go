package config

// terraforms maps words of Terraform that cosplay does not have to what to write instead. The diagnostic shows this
// text instead of the list of valid words.
var terraforms = map[string]string{
	"action":             "cosplay has no actions. Remove it; cosplay exec runs programs in a session.",
	"backend":            "The state is a file. Set its path: cosplay { state = \"../fleet.state.json\" }",
	"cloud":              "The state is a file. Set its path: cosplay { state = \"../fleet.state.json\" }",
	"connection":         "cosplay ssh needs no connection settings. Remove it; an ssh block states which keys may log in, and at which address.",
	"data":               "cosplay has no data sources. Remove it; file(...), env(...) and cosplay.catalog[\"3090\"] read existing values.",
	"depends_on":         "Only sessions can depend on others; cosplay evaluates the rest after them. Leave it out.",
	"dynamic":            "An expression cannot generate blocks. Write each one out; its attributes can be expressions, also with each.value and count.index.",
	"ephemeral":          "cosplay has no ephemeral values. Leave it out; cosplay neither prints nor stores a variable with sensitive = true.",
	"module":             "cosplay has no modules. Put the blocks into this folder: cosplay reads every *.hcl file in it. for_each creates many sessions from one block.",
	"postcondition":      "Use a check block for conditions on sessions. Write: check \"NAME\" { condition = ... }",
	"precondition":       "Write a validation block for conditions on a variable, or a check block for conditions on sessions.",
	"provider":           "cosplay has no providers. Remove it; a host block describes the machine, and without one cosplay uses this machine.",
	"provisioner":        "cosplay has no provisioners. Remove it; the session's program is its command, and the image contains what the program needs.",
	"required_providers": "cosplay has no providers. Remove it; a host block describes the machine, and without one cosplay uses this machine.",
	"resource":           "The only resource is the session. Write: session \"worker\" { target = \"rtx-2060\" }",
	"terraform":          "Settings of cosplay itself are in a cosplay block. Write: cosplay { required_version = \">= 0.1\" }",

	"create_before_destroy": "The replacement of a session needs its slice, so cosplay destroys the old session first. Leave it out.",
}

// composes does the same for words of Docker, Compose and Kubernetes.
var composes = map[string]string{
	"args":           "The program and its arguments are one list. Write: command = [\"python\", \"train.py\"]",
	"cmd":            "The program of a session is its command. Write: command = [\"python\", \"train.py\"]",
	"deploy":         "The number of sessions is count. Write: count = 2",
	"container_name": "cosplay names a container after its session. Leave it out, and choose the name behind the word session.",
	"entrypoint":     "The program of a session is its command. Write: command = [\"python\", \"train.py\"]",
	"environment":    "The environment is in env. Write: env = { SEED = 11 }",
	"labels":         "cosplay labels its containers itself. Leave it out.",
	"mem_limit":      "The memory limit is in a limits block. Write: limits { memory = \"32GiB\" }",
	"mounts":         mountsAreBlocks,
	"ports":          "cosplay publishes no ports. Leave it out; ssh -L forwards a session's ports, with the host names of cosplay ssh-config.",
	"replicas":       "The number of sessions is count. Write: count = 2",
	"restart_policy": "The attribute is restart. Write: restart = \"no\"",
	"user":           "Sessions run as your host user, with the same name and UID. Leave it out.",
	"volumes":        mountsAreBlocks,
	"working_dir":    "A session's folder is its workspace, at /workspace. Write: workspace = \"./exp\"",
}

const mountsAreBlocks = "Each volume is a block. Write: volume { source = \"./data\", target = \"/data\" }, each on a separate line."

// terraformValues does the same for names in expressions.
var terraformValues = map[string]string{
	"data":      terraforms["data"],
	"module":    terraforms["module"],
	"resource":  "Only output and check blocks can use live attributes of sessions. Write session.worker without resource before it.",
	"self":      "A block cannot refer to itself. Write the value itself, or put it into a local.",
	"terraform": "cosplay has no workspaces. Write a variable instead, and give each workspace its own folder, or its own state with --state.",
}

// terraformFunctions does the same for functions of Terraform that cosplay does not have.
var terraformFunctions = map[string]string{
	"base64gzip": notHere, "cidrhost": notHere, "cidrnetmask": notHere, "cidrsubnet": notHere, "cidrsubnets": notHere,
	"convert": notHere, "rsadecrypt": notHere, "textdecodebase64": notHere, "textencodebase64": notHere, "timecmp": notHere,
	"type": notHere, "uuidv5": notHere,
	"bcrypt": notTwice, "plantimestamp": notTwice, "timestamp": notTwice, "uuid": notTwice,

	"ephemeralasnull": "cosplay has no ephemeral values. Write the value itself.",
	"list":            "A list is written in brackets. Write: [a, b]",
	"map":             "A map is written in braces. Write: { name = value }",
	"templatestring":  "Write the template itself, in quotes or as a heredoc, or put it into a file for templatefile(...).",
}

const notHere = "cosplay does not have this function of Terraform. Write it in another way, or put its result into a variable."

const notTwice = "Its value would change with each plan and replace sessions each time. Put the value into a variable, or let the session's command compute it."
