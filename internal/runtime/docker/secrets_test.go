package docker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"

	"cosplay/internal/initd"
	"cosplay/internal/resource"
	"cosplay/internal/shared"
)

const hidden = "hunter2-hidden"

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
	folder := w.Inside(w.s.ID)
	check(t, os.RemoveAll(filepath.Join(folder, "private")))
	file := filepath.Join(folder, filepath.Base(initd.ConfigPath))
	data, err := os.ReadFile(file)
	check(t, err)
	var c initd.Config
	check(t, json.Unmarshal(data, &c))
	c.Env["TOKEN"] = hidden
	data, err = json.Marshal(c)
	check(t, err)
	check(t, shared.Replace(file, data, 0o600))
	check(t, w.WriteManifest(w.s.ID, present(filepath.Join(folder, cudaFacadeFile))))
	delete(there.Config.Labels, labelPrivate)
	there.Config.Env = append(there.Config.Env, "TOKEN="+hidden)
	there.HostConfig.Ulimits = nil // podman 4.3 reports its own by names that it rejects
	created, err := w.Engine.client.ContainerCreate(ctx, there.Config, there.HostConfig, nil, nil, w.s.BodyName())
	check(t, err)
	check(t, w.Engine.client.ContainerStart(ctx, created.ID, container.StartOptions{}))
	check(t, w.await(ctx, w.s, launched{id: created.ID, port: publishedPort(there)}))
	return created.ID
}
