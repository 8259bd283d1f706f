package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/client"
)

// hub is the registry of names that name none.
const hub = "docker.io"

// trouble is a way for a pull to fail. Engines tell most of them by text alone.
type trouble struct {
	signs []string // in small letters; one is enough
	words string   // with the verbs of notPulled
}

// troubles are in the order in which they are looked for.
var troubles = []trouble{
	{[]string{"toomanyrequests", "too many requests", "rate limit"},
		"%[2]s lets %[4]s pull no more for now; wait, or log in as somebody with a higher limit: %[3]s"},
	{[]string{"no such host", "dial tcp", "i/o timeout", "connection refused", "connection reset", "network is unreachable", "no route to host",
		"tls handshake timeout", "client.timeout", "deadline exceeded", "server misbehaving"},
		"the engine cannot reach %[2]s; check the network, DNS and proxy of the engine's machine, or carry the image there by docker save and docker load"},
	{[]string{"no space left"},
		"the engine's disk is full; docker system df shows what takes the space"},
	{[]string{"manifest unknown", "name unknown", "not found", "does not exist", "repository name not known"},
		"%[2]s has no such image, or not for %[4]s; check the name and the tag or, where it may be private, log in: %[3]s"},
	{[]string{"unauthorized", "denied", "forbidden", "no basic auth credentials", "authentication required", "incorrect username or password"},
		"%[2]s refuses %[4]s; log in as somebody who may pull it: %[3]s"},
	{[]string{"http response to https client"},
		"%[2]s speaks no TLS, and the engine does not trust it without; name it in insecure-registries of /etc/docker/daemon.json"},
}

// notPulled says why an image was not pulled, and what to do next. user is who
// asked for it; "" is nobody.
func notPulled(ctx context.Context, name, registry, user string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("pulling %s: %w", name, context.Cause(ctx))
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	who, command := user, "docker login"
	if user == "" {
		who = "anyone without a login"
	}
	if registry != hub {
		command += " " + registry
	}
	told := strings.ToLower(err.Error())
	for _, t := range troubles {
		for _, sign := range t.signs {
			if strings.Contains(told, sign) {
				return fmt.Errorf("pulling %[1]s: "+t.words+" (the engine says: %[5]w)", name, registry, command, who, err)
			}
		}
	}
	return fmt.Errorf("pulling %s: %w", name, err)
}
