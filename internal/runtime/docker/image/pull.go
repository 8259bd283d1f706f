package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/cpuguy83/dockercfg"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"
	"github.com/docker/go-units"
)

// Pull fetches an image from its registry, with the credentials that the user's docker configuration has for it. It
// reports progress to say, a line at a time.
func Pull(ctx context.Context, engine Engine, ref string, say func(string)) error {
	from, err := sourceOf(ref)
	if err != nil {
		return err
	}
	name := from.name
	if from.helper != nil {
		say(fmt.Sprintf("%s: without a login, since the credentials for %s are not available: %v", name, from.registry, from.helper))
	}
	say(name + ": pulling")
	stream, err := engine.ImagePull(ctx, name, image.PullOptions{RegistryAuth: from.login})
	if err != nil {
		return from.notPulled(ctx, err)
	}
	defer stream.Close()
	p := pulling{name: name, say: say, layers: map[string]*layer{}}
	if err := messages(stream, p.hear); err != nil {
		return from.notPulled(ctx, err)
	}
	say(name + ": pulled")
	return nil
}

// Offered is the image to which a name refers in its registry, as its name with its digest. The engine asks the registry
// with the user's credentials; nothing is pulled.
func Offered(ctx context.Context, engine Engine, ref string) (image string, err error) {
	from, err := sourceOf(ref)
	if err != nil {
		return "", err
	}
	there, err := engine.DistributionInspect(ctx, from.name, from.login)
	if err != nil {
		return "", from.notPulled(ctx, err)
	}
	digested, err := reference.WithDigest(reference.TrimNamed(from.named), there.Descriptor.Digest)
	if err != nil {
		return "", err
	}
	return reference.FamiliarString(digested), nil
}

// source is where an image is pulled from, and the login there.
type source struct {
	named          reference.Named
	name, registry string
	user, login    string // "" without credentials
	helper         error  // why there are no credentials. As with docker, it prevents no pull: the image may be public
}

func sourceOf(ref string) (source, error) {
	named, err := parse(ref)
	if err != nil {
		return source{}, err
	}
	from := source{named: named, name: reference.FamiliarString(named), registry: reference.Domain(named)}
	from.user, from.login, from.helper = loginFor(from.registry)
	return from, nil
}

// Progress is reported after each layer, and in between in these steps.
const (
	percentStep = 5
	byteStep    = 200e6
)

type pulling struct {
	name   string
	say    func(string)
	layers map[string]*layer
	said   [3]int64 // layers done, steps of percent, steps of bytes at the last report
}

// layer is the progress of one layer, which is fetched, then unpacked. In bytes.
type layer struct {
	fetched, unpacked int64
	total             int64 // 0: not known yet
	done              bool
}

func (p *pulling) hear(m jsonmessage.JSONMessage) {
	l := p.layers[m.ID]
	if l == nil {
		l = &layer{}
	}
	var current int64
	// With an image store of containerd, the progress of unpacking is in seconds.
	if m.Progress != nil && m.Progress.Units == "" {
		current = m.Progress.Current
		l.total = max(l.total, m.Progress.Total)
	}
	speak := true
	switch m.Status {
	case "Pulling fs layer", "Waiting":
		speak = false // the layers are listed one by one, so their number is not known yet
	case "Already exists":
		l.done, speak = true, false
	case "Downloading":
		l.fetched = current
	case "Verifying Checksum", "Download complete":
		l.fetched = l.total
	case "Extracting":
		l.fetched, l.unpacked = l.total, current
	case "Pull complete":
		l.fetched, l.unpacked, l.done = l.total, l.total, true
	default:
		return
	}
	p.layers[m.ID] = l
	if speak {
		p.report()
	}
}

// report reports the progress if it has changed since the last report. There is no percentage before the size of
// every layer is known: a layer that waits may be the largest.
func (p *pulling) report() {
	var done, fetched, work, total int64
	known := true
	for _, l := range p.layers {
		if l.done {
			done++
		}
		known = known && (l.done || l.total > 0)
		fetched += l.fetched
		work += l.fetched + l.unpacked
		total += 2 * l.total
	}
	now, amount := [3]int64{done, 0, 0}, ""
	switch {
	case known && total > 0:
		percent := 100 * work / total
		now[1], amount = percent/percentStep, fmt.Sprintf(", %d %%", percent)
	case fetched > 0:
		now[2], amount = fetched/byteStep, ", "+units.HumanSize(float64(fetched))+" fetched"
	}
	if now == p.said {
		return
	}
	p.said = now
	p.say(fmt.Sprintf("%s: %d of %d layers%s", p.name, done, len(p.layers), amount))
}

// hub is the registry of names without a registry.
const hub = "docker.io"

// trouble is an error of a pull. Engines report most of them by text alone.
type trouble struct {
	signs []string // in small letters; one is enough
	words string   // REGISTRY, WHO and LOGIN are replaced
}

// troubles are in the order in which they are tried.
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

// notPulled says why an image was not pulled, and how to fix it.
func (from source) notPulled(ctx context.Context, err error) error {
	err = from.explain(ctx, err)
	if from.helper != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w. It was asked without a login, since the credentials are not available: %w", err, from.helper)
	}
	return err
}

func (from source) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return fmt.Errorf("pulling %s: %w", from.name, context.Canceled)
	case ctx.Err() != nil:
		return fmt.Errorf("pulling %s from %s: %w; check the network, DNS and proxy of the engine's machine, and run the same command again", from.name, from.registry, context.Cause(ctx))
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("pulling %s: %w", from.name, err)
	}
	who, command := cmp.Or(from.user, "anyone without a login"), "docker login"
	if from.registry != hub {
		command += " " + from.registry
	}
	words := strings.NewReplacer("REGISTRY", from.registry, "LOGIN", command, "WHO", who)
	said := strings.ToLower(err.Error())
	for _, t := range troubles {
		if slices.ContainsFunc(t.signs, func(sign string) bool { return strings.Contains(said, sign) }) {
			return fmt.Errorf("pulling %s: %s (the engine says: %w)", from.name, words.Replace(t.words), err)
		}
	}
	return fmt.Errorf("pulling %s: %w", from.name, err)
}

// loginFor reads the user's docker configuration, with its credential helpers. header is the login as engines take it.
// Both are empty without credentials.
func loginFor(host string) (user, header string, err error) {
	host = dockercfg.ResolveRegistryHost(host)
	user, secret, err := dockercfg.GetRegistryCredentials(host)
	if err != nil || secret == "" {
		return "", "", cmp.Or(err, missingHelper(host))
	}
	auth := registry.AuthConfig{ServerAddress: host, Username: user, Password: secret}
	if user == "" {
		auth = registry.AuthConfig{ServerAddress: host, IdentityToken: secret}
		user = "an identity token"
	}
	header, err = registry.EncodeAuthConfig(auth)
	return user, header, err
}

// missingHelper is the error of a credential helper that the user's configuration names and that is not installed.
func missingHelper(host string) error {
	config, err := dockercfg.LoadDefaultConfig()
	if err != nil {
		return nil // the user has no configuration
	}
	helper := cmp.Or(config.CredentialHelpers[host], config.CredentialsStore)
	if helper == "" {
		return nil
	}
	_, err = exec.LookPath("docker-credential-" + helper)
	return err
}
