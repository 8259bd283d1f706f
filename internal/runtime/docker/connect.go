package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cpuguy83/dockercfg"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// oldest is the API of Docker 20.10, the oldest that is tested.
const oldest = "1.41"

// How long an engine may take to answer, and to create a container: a stuck engine accepts
// connections and does not answer. Variables, for tests.
var (
	readTime   = 30 * time.Second
	createTime = 3 * time.Minute
)

func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, readTime)
}

// Engine is a Docker engine, or podman, with its properties. It is safe for concurrent use.
type Engine struct {
	client *client.Client
	info   system.Info
	podman bool // it is podman, which answers Docker's API

	turns chan struct{} // taken while a session is prepared

	images sync.Map // madeFrom by the name that sessions use
	read   sync.Map // *container.InspectResponse by the session, of One, for the command that follows
}

// madeFrom is an image from which containers are created.
type madeFrom struct {
	id              string
	env             []string // NAME=value
	entrypoint, cmd []string
	user, dir       string
}

func (e *Engine) image(ctx context.Context, name string) (madeFrom, error) {
	if image, known := e.images.Load(name); known {
		return image.(madeFrom), nil
	}
	there, err := e.client.ImageInspect(ctx, e.imageName(ctx, name))
	if err != nil {
		return madeFrom{}, err
	}
	image := madeFrom{id: there.ID}
	if there.Config != nil {
		image.env, image.entrypoint, image.cmd = there.Config.Env, there.Config.Entrypoint, there.Config.Cmd
		image.user, image.dir = there.Config.User, there.Config.WorkingDir
	}
	e.images.Store(name, image)
	return image, nil
}

// atTurn starts a container once few enough sessions are being prepared: with more, each takes longer, up to its
// timeout.
func (e *Engine) atTurn(ctx context.Context, start func() (launched, error)) (launched, error) {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
		return start()
	case <-ctx.Done():
		return launched{}, context.Cause(ctx)
	}
}

// endpoint is the address of an engine, and its source.
type endpoint struct {
	host string
	from string // "DOCKER_HOST", "the docker context lab", "" for the default
	tls  string // a folder with ca.pem, cert.pem and key.pem; "" is none
}

// Connect finds the engine as the docker command does: DOCKER_HOST, else the current context, else the default
// socket. It returns an error if the engine does not answer or is too old.
func Connect(ctx context.Context) (*Engine, error) {
	at, err := find()
	if err != nil {
		return nil, err
	}
	return connect(ctx, at)
}

// Reach connects to the engine for the commands in a session that exists. It asks nothing but what the engine answers at
// once: the rest takes Docker 10 ms each, since it runs its programs to get their versions.
func Reach(ctx context.Context) (*Engine, error) {
	at, err := find()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(at.host, "unix://") {
		return connect(ctx, at)
	}
	e, err := open(at)
	if err != nil {
		return nil, err
	}
	if err := e.ping(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// ping chooses the version of the API, and finds out whether the engine is podman.
func (e *Engine) ping(ctx context.Context) error {
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+client.DummyHost+"/_ping", nil)
	if err != nil {
		return err
	}
	answer, err := e.client.HTTPClient().Do(ask)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if os.Getenv(client.EnvOverrideAPIVersion) == "" {
		e.client.NegotiateAPIVersionPing(types.Ping{APIVersion: answer.Header.Get("Api-Version")})
	}
	e.podman = answer.Header.Get("Libpod-Api-Version") != ""
	if versions.LessThan(e.client.ClientVersion(), oldest) {
		return fmt.Errorf("the Docker engine has API %s; cosplay needs API %s", e.client.ClientVersion(), oldest)
	}
	return nil
}

func connect(ctx context.Context, at endpoint) (*Engine, error) {
	e, err := open(at)
	if err != nil {
		return nil, err
	}
	asking, cancel := soon(ctx)
	defer cancel()
	var version types.Version
	if e.info, err = e.client.Info(asking); err == nil {
		version, err = e.client.ServerVersion(asking)
	}
	if err != nil {
		err = e.explain("asking the Docker engine at "+at.host, err, subject{})
	} else if versions.LessThan(e.client.ClientVersion(), oldest) {
		err = fmt.Errorf("the Docker engine at %s is %s with API %s; cosplay needs API %s: install Docker 20.10 or later", at.host, e.info.ServerVersion, e.client.ClientVersion(), oldest)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.podman = isPodman(version)
	return e, nil
}

// open prepares a connection to an engine, and asks it nothing.
func open(at endpoint) (*Engine, error) {
	scheme, _, _ := strings.Cut(at.host, "://")
	if scheme != "unix" && scheme != "tcp" && scheme != "http" {
		return nil, fmt.Errorf("%s names the engine %s, which cannot be used: sessions mount folders of this machine, so their engine must be here. Fix: set DOCKER_HOST=%s, or run cosplay on that machine",
			at.from, at.host, client.DefaultDockerHost)
	}
	options := []client.Opt{client.WithTLSClientConfigFromEnv(), client.WithHost(at.host), client.WithVersionFromEnv(), client.WithAPIVersionNegotiation()}
	if at.tls != "" {
		options = append(options, client.WithTLSClientConfig(filepath.Join(at.tls, "ca.pem"), filepath.Join(at.tls, "cert.pem"), filepath.Join(at.tls, "key.pem")))
	}
	c, err := client.NewClientWithOpts(options...)
	if err != nil {
		return nil, fmt.Errorf("the Docker engine %s (%s): %w", at.host, cmp.Or(at.from, "the default"), err)
	}
	return &Engine{client: c, podman: strings.Contains(at.host, "podman"), turns: make(chan struct{}, max(4, 2*runtime.NumCPU()))}, nil
}

// Close closes the connections to the engine.
func (e *Engine) Close() error { return e.client.Close() }

// Client speaks to the engine.
func (e *Engine) Client() *client.Client { return e.client }

// Name is the engine's, with its version: "Docker 20.10.24".
func (e *Engine) Name() string {
	version, _, _ := strings.Cut(e.info.ServerVersion, "+") // a distribution adds a suffix
	if e.podman {
		return "Podman " + version
	}
	return "Docker " + version
}

// Installed reports whether there is an engine to connect to, running or not: one that the
// environment or the docker command's context names, or one with the default socket.
func Installed() bool {
	at, err := find()
	if err != nil || at.from != "" {
		return true // Connect reports the error
	}
	_, err = os.Stat(strings.TrimPrefix(client.DefaultDockerHost, "unix://"))
	return err == nil
}

func find() (endpoint, error) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return endpoint{host: host, from: client.EnvOverrideHost}, nil
	}
	configFile, err := dockercfg.ConfigPath()
	if err != nil {
		return endpoint{host: client.DefaultDockerHost}, nil // the user has no configuration
	}
	name := os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		if err := readJSON(configFile, &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return endpoint{}, err
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return endpoint{host: client.DefaultDockerHost}, nil
	}
	return contextEndpoint(filepath.Dir(configFile), name)
}

// contextEndpoint looks up a context of the docker command, whose folders are named after a hash of its name.
func contextEndpoint(folder, name string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	err := readJSON(filepath.Join(folder, "contexts", "meta", id, "meta.json"), &meta)
	if errors.Is(err, fs.ErrNotExist) {
		return endpoint{}, fmt.Errorf("there is no docker context %q; list them by docker context ls, choose one by docker context use NAME", name)
	}
	if err != nil {
		return endpoint{}, err
	}
	at := endpoint{host: meta.Endpoints["docker"].Host, from: "the docker context " + name}
	if at.host == "" {
		return endpoint{}, fmt.Errorf("the docker context %q names no Docker engine; choose another by docker context use NAME", name)
	}
	tls := filepath.Join(folder, "contexts", "tls", id, "docker")
	if _, err := os.Stat(filepath.Join(tls, "cert.pem")); err == nil {
		at.tls = tls
	}
	return at, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged (%w). Fix: repair it, or name the engine by DOCKER_HOST", path, err)
	}
	return nil
}
