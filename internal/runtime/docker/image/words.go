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
	words string   // REGISTRY, WHO and LOGIN are replaced
}

// troubles are in the order in which they are looked for.
var troubles = []trouble{
	{[]string{"toomanyrequests", "too many requests", "rate limit"},
		"REGISTRY lets WHO pull no more for now; wait, or log in as a user with a higher limit: LOGIN"},
	{[]string{"no such host", "dial tcp", "i/o timeout", "connection refused", "connection reset", "network is unreachable", "no route to host",
		"tls handshake timeout", "client.timeout", "deadline exceeded", "server misbehaving"},
		"the engine cannot reach REGISTRY; check the network, DNS and proxy of the engine's machine, or carry the image there by docker save and docker load"},
	{[]string{"no space left"},
		"the engine's disk is full; docker system df shows what takes the space"},
	{[]string{"manifest unknown", "name unknown", "not found", "does not exist", "repository name not known"},
		"REGISTRY has no such image, or not for WHO; check the name and the tag or, where it may be private, log in: LOGIN"},
	{[]string{"unauthorized", "denied", "forbidden", "no basic auth credentials", "authentication required", "incorrect username or password"},
		"REGISTRY refuses WHO; log in as a user who may pull it: LOGIN"},
	{[]string{"http response to https client"},
		"REGISTRY speaks no TLS, and the engine does not trust it without; name it in insecure-registries of /etc/docker/daemon.json"},
}

// notPulled says why an image was not pulled, and what to do next. user is who asked for it; "" is nobody.
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
	words := strings.NewReplacer("REGISTRY", registry, "LOGIN", command, "WHO", who)
	told := strings.ToLower(err.Error())
	for _, t := range troubles {
		for _, sign := range t.signs {
			if strings.Contains(told, sign) {
				return fmt.Errorf("pulling %s: %s (the engine says: %w)", name, words.Replace(t.words), err)
			}
		}
	}
	return fmt.Errorf("pulling %s: %w", name, err)
}
