package docker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

const hidden = "hunter2-hidden"

// Sensitive values are in three files of the session's user and nowhere else, and
// what the engine is given does not show them.
func TestSecretsInFolder(t *testing.T) {
	w := &world{Runtime: Runtime{Engine: &Engine{}, Base: filepath.Join(t.TempDir(), "sessions"), Host: hostName, Owner: resource.Owner{Lineage: "l", Key: "key"}}}
	s := w.session(t, "one")
	s.Secret = map[string]string{"TOKEN": hidden, "SEED": hidden, loaderPath: hidden}
	s.Env[loaderPath] = "never both"
	s = s.Seal("key")
	granted := grant{env: map[string]string{loaderPath: "/first:" + hidden, "OTHER": "open"}}
	s.Spec.User = resource.User{Name: "jane", UID: os.Getuid(), GID: os.Getgid()}
	if os.Geteuid() == 0 {
		s.Spec.User.UID, s.Spec.User.GID = 1234, 1235
	}
	for range 2 { // again over the first
		check(t, w.furnish(t.Context(), s, resource.Handle{UUID: "MIG-1"}, granted, s.Spec.Image))
	}
	var holders []string
	check(t, filepath.Walk(w.Base, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || strings.Contains(path, shared.Dir) {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), hidden) {
			owner := info.Sys().(*syscall.Stat_t)
			if info.Mode().Perm() != 0o400 || int(owner.Uid) != s.Spec.User.UID || int(owner.Gid) != s.Spec.User.GID {
				t.Errorf("%s is %v of user %d", path, info.Mode(), owner.Uid)
			}
			holders = append(holders, strings.TrimPrefix(path, w.inside(s.ID)))
		}
		return err
	}))
	if want := []string{"/private/environment", "/private/profile.sh", "/private/secrets.json"}; !slices.Equal(holders, want) {
		t.Errorf("the value is in %q, want %q", holders, want)
	}
	if info, err := os.Stat(filepath.Join(w.inside(s.ID), privateDir)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("their folder is %v, %v", info, err)
	}
	c, err := initd.Load(filepath.Join(w.inside(s.ID), "init.json"))
	check(t, err)
	if c.Secrets["TOKEN"] != hidden || c.Secrets["SEED"] != hidden || c.Secrets[loaderPath] != "/first:"+hidden || c.Env["OTHER"] != "open" || c.Env[loaderPath] != "" {
		t.Errorf("cosplay-init reads %+v", c)
	}
	given, err := json.Marshal([]any{w.environment(s, "MIG-1", granted), w.labels(s, "MIG-1"), w.mounts(s, granted)})
	check(t, err)
	if strings.Contains(string(given), hidden) || !strings.Contains(string(given), "OTHER=open") {
		t.Errorf("the engine is given %s", given)
	}

	s.Secret = nil
	check(t, w.furnish(t.Context(), s, resource.Handle{UUID: "MIG-1"}, grant{}, s.Spec.Image))
	if _, err := os.Stat(filepath.Join(w.inside(s.ID), privateDir)); !os.IsNotExist(err) {
		t.Errorf("without sensitive values their folder stays: %v", err)
	}
}

// A container of an older cosplay has sensitive values in its own environment. It is
// kept and works; it is only reported.
func TestSecretsOfOlderContainer(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.s.Secret = map[string]string{"TOKEN": hidden}
	w.s = w.s.Seal(w.Owner.Key)
	made := w.prepare(t)
	if all := w.list(t); len(all) != 1 || all[0].SecretsInEnv {
		t.Errorf("a new container is listed as %+v", all)
	}

	old := w.older(t, made)
	all := w.list(t)
	if len(all) != 1 || all[0].ID != old || !all[0].SecretsInEnv || all[0].Hash != made.Hash {
		t.Fatalf("the older container is listed as %+v", all)
	}
	for _, stopped := range []bool{false, true} {
		if stopped {
			check(t, w.Engine.client.ContainerStop(ctx, old, container.StopOptions{}))
		}
		if again := w.prepare(t); again.ID != old {
			t.Fatalf("stopped %v: the older container is replaced", stopped)
		}
		if out, complaint, _ := w.exec(t, nil, "sh", "-c", "echo $TOKEN"); out != hidden+"\n" {
			t.Errorf("stopped %v: a program has %q, %s", stopped, out, complaint)
		}
	}
	if all := w.list(t); !all[0].SecretsInEnv {
		t.Error("docker inspect still shows the values, and that is not reported")
	}
}

// older replaces a container by one with the layout of before: sensitive values in
// its environment and in cosplay-init's configuration.
func (w *world) older(t *testing.T, made resource.Body) (id string) {
	t.Helper()
	ctx := context.Background()
	there, err := w.inspect(ctx, made.ID)
	check(t, err)
	w.kill(t, made.ID)
	inside := w.inside(w.s.ID)
	check(t, os.RemoveAll(filepath.Join(inside, privateDir)))
	file := filepath.Join(inside, filepath.Base(initd.ConfigPath))
	data, err := os.ReadFile(file)
	check(t, err)
	var c initd.Config
	check(t, json.Unmarshal(data, &c))
	c.Env["TOKEN"] = hidden
	data, err = json.Marshal(c)
	check(t, err)
	check(t, shared.Replace(file, data, 0o600))
	check(t, w.sealFiles(w.s.ID, present(filepath.Join(inside, cudaFacadeFile))))
	delete(there.Config.Labels, labelPrivate)
	there.Config.Env = append(there.Config.Env, "TOKEN="+hidden)
	there.HostConfig.Ulimits = nil // podman 4.3 reports its own by names that it rejects
	created, err := w.Engine.client.ContainerCreate(ctx, there.Config, there.HostConfig, nil, nil, w.s.BodyName())
	check(t, err)
	check(t, w.Engine.client.ContainerStart(ctx, created.ID, container.StartOptions{}))
	check(t, w.await(ctx, w.s, launched{id: created.ID, port: publishedPort(there)}))
	return created.ID
}
