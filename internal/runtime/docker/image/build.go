package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/cpuguy83/dockercfg"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/pkg/jsonmessage"

	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// The defaults of a build.
const (
	DefaultBase = "pytorch/pytorch:2.12.0-cuda12.6-cudnn9-devel"
	DefaultTag  = resource.DefaultImage
)

// cudaImages is the repository of CUDATag.
const cudaImages = "nvidia/cuda:"

//go:embed session
var embedded embed.FS

// BuildOptions are the options of the session image. All may be empty.
type BuildOptions struct {
	Base    string // Debian, Ubuntu or derived from one of them; default DefaultBase
	CUDATag string // instead of Base: a tag of nvidia/cuda
	Tag     string // name of the built image; default DefaultTag
	Version string // of cosplay, for a label
	NoCache bool   // run every step again
}

// settled checks the options and fills in the defaults.
func (o BuildOptions) settled() (BuildOptions, error) {
	if o.Base != "" && o.CUDATag != "" {
		return o, fmt.Errorf("base %s and CUDA tag %s both say what to build upon; give one of them", o.Base, o.CUDATag)
	}
	if o.CUDATag != "" {
		o.Base = cudaImages + o.CUDATag
	}
	var err error
	if o.Base, err = Normal(cmp.Or(o.Base, DefaultBase)); err != nil {
		return o, err
	}
	o.Tag, err = Normal(cmp.Or(o.Tag, DefaultTag))
	return o, err
}

// args are the build arguments that the Dockerfile declares.
func (o BuildOptions) args() map[string]*string {
	args := map[string]*string{"BASE_IMAGE": &o.Base}
	if o.Version != "" {
		args["COSPLAY_VERSION"] = &o.Version
	}
	return args
}

// Build builds the session image, and pulls its base if the engine lacks it. It reports each step to say. The builder
// is the engine's classic one, which every engine has, or BuildKit by the docker command if buildsByCommand says so.
func Build(ctx context.Context, engine Engine, o BuildOptions, say func(string)) error {
	o, err := o.settled()
	if err != nil {
		return err
	}
	byCommand, err := buildsByCommand(ctx, engine)
	if err != nil {
		return err
	}
	_, err = engine.ImageInspect(ctx, o.Base)
	if errdefs.IsNotFound(err) {
		err = Pull(ctx, engine, o.Base, say)
	}
	if err != nil {
		return err
	}
	files, err := sessionFiles()
	if err != nil {
		return err
	}
	say(fmt.Sprintf("%s: building upon %s", o.Tag, o.Base))
	r := &report{say: say, buildKit: byCommand}
	if byCommand {
		err = runCommand(ctx, engine, o, files, r)
	} else {
		err = runEngine(ctx, engine, o, files, r)
	}
	if err != nil {
		return r.failure(ctx, o, err)
	}
	say(o.Tag + ": built")
	return nil
}

// sessionFiles are the files of the build, as a tar. The same binary gives the same bytes.
func sessionFiles() (io.Reader, error) {
	files, err := fs.Sub(embedded, "session")
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.AddFS(files), w.Close()); err != nil {
		return nil, err
	}
	return &archive, nil
}

// runEngine builds by the engine's own classic builder.
func runEngine(ctx context.Context, engine Engine, o BuildOptions, files io.Reader, r *report) error {
	args, err := proxies(engine.DaemonHost())
	if err != nil {
		r.say(fmt.Sprintf("%s: without your proxy settings, since the docker configuration cannot be read: %v", o.Tag, err))
	}
	maps.Copy(args, o.args())
	answer, err := engine.ImageBuild(ctx, files, build.ImageBuildOptions{
		Version:     build.BuilderV1,
		Tags:        []string{o.Tag},
		BuildArgs:   args,
		NoCache:     o.NoCache,
		Remove:      true,
		ForceRemove: true,
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	defer r.end()
	return messages(answer.Body, func(m jsonmessage.JSONMessage) { r.hear(m.Stream) })
}

// buildsByCommand reports whether BuildKit builds, by the docker command: if DOCKER_BUILDKIT requests it, or else if
// the engine prefers it and the command can. The engine's API alone does not reach BuildKit.
func buildsByCommand(ctx context.Context, engine Engine) (bool, error) {
	if value := os.Getenv("DOCKER_BUILDKIT"); value != "" {
		asked, err := strconv.ParseBool(value)
		if err != nil {
			return false, fmt.Errorf("DOCKER_BUILDKIT is %q; set it to 1 for BuildKit, to 0 for the engine's classic builder", value)
		}
		if asked && !commandHasBuildKit(ctx) {
			return false, errors.New("DOCKER_BUILDKIT=1 asks for BuildKit, but there is no docker command here that has it; " +
				"install docker-buildx-plugin (from Docker) or docker-buildx (from Debian or Ubuntu), or unset DOCKER_BUILDKIT for the engine's classic builder")
		}
		return asked, nil
	}
	ping, err := engine.Ping(ctx)
	if err != nil {
		return false, err
	}
	return ping.BuilderVersion == build.BuilderBuildKit && commandHasBuildKit(ctx), nil
}

var versionWords = pattern.Of(`^Docker version (\d+)\.`)

// commandHasBuildKit reports whether the docker command can use BuildKit: by its plugin buildx, or itself if it is
// older than 23.
func commandHasBuildKit(ctx context.Context) bool {
	if exec.CommandContext(ctx, "docker", "buildx", "version").Run() == nil {
		return true
	}
	output, err := exec.CommandContext(ctx, "docker", "--version").Output()
	if err != nil {
		return false
	}
	version := versionWords().FindSubmatch(output)
	if version == nil {
		return false
	}
	major, err := strconv.Atoi(string(version[1]))
	return err == nil && major >= 19 && major < 23
}

// runCommand builds by the docker command.
func runCommand(ctx context.Context, engine Engine, o BuildOptions, files io.Reader, r *report) error {
	args := []string{"build", "--progress=plain", "--tag", o.Tag}
	for name, value := range o.args() {
		args = append(args, "--build-arg", name+"="+*value)
	}
	if o.NoCache {
		args = append(args, "--no-cache")
	}
	docker := exec.CommandContext(ctx, "docker", append(args, "-")...)
	docker.Env = append(os.Environ(), "DOCKER_BUILDKIT=1")
	// The command's own context may name another engine. For a remote engine the environment has more than its
	// address.
	if host := engine.DaemonHost(); strings.HasPrefix(host, "unix://") {
		docker.Env = append(docker.Env, "DOCKER_HOST="+host)
	}
	docker.Stdin, docker.Stdout, docker.Stderr = files, r, r
	// An older command ignores SIGTERM, and a plugin would outlive it. The engine ends the build when its connection
	// closes.
	docker.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	docker.Cancel = func() error { return syscall.Kill(-docker.Process.Pid, syscall.SIGKILL) }
	defer r.end()
	return docker.Run()
}

// proxies are the build arguments with the user's proxy, for programs in a build. The docker command passes them by
// itself, the engine's API does not.
func proxies(engineHost string) (map[string]*string, error) {
	args := map[string]*string{}
	config, err := dockercfg.LoadDefaultConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return args, nil
	}
	if err != nil {
		return args, err
	}
	proxy, ok := config.Proxies[engineHost]
	if !ok {
		proxy = config.Proxies["default"]
	}
	for name, value := range map[string]string{
		"http_proxy": proxy.HTTPProxy, "https_proxy": proxy.HTTPSProxy, "ftp_proxy": proxy.FTPProxy, "no_proxy": proxy.NoProxy,
	} {
		if value != "" {
			args[name] = &value
		}
	}
	return args, nil
}
