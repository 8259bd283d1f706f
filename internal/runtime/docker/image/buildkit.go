package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/build"
)

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

var versionWords = regexp.MustCompile(`^Docker version (\d+)\.`)

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
	version := versionWords.FindSubmatch(output)
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
