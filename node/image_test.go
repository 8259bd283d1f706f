package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

// docker runs a command of Docker's client.
func docker(t *testing.T, args ...string) (said string) {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// image is the image of the driver, loaded into Docker, and a bed for it.
type image struct {
	*bed
	secrets string // what kubelet mounts into a pod
}

func newImage(t *testing.T) image {
	t.Helper()
	i := image{bed: newCluster(t, "1 x h200")}
	archives, err := filepath.Glob("../dist/cosplay-node-*-linux-" + runtime.GOARCH + ".tar")
	if err != nil || len(archives) != 1 {
		t.Fatalf("the archives of the image are %v. Fix: make image", archives)
	}
	docker(t, "load", "--input", archives[0])
	i.secrets = filepath.Join(i.dir, "secrets")
	check(t, os.Mkdir(i.secrets, 0o755))
	ca, err := os.ReadFile(filepath.Join(i.dir, "certs", "apiserver.crt"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(i.secrets, "ca.crt"), ca, 0o600))
	i.newToken(i.install())
	return i
}

func (i image) newToken(token string) {
	i.Helper()
	check(i.T, os.WriteFile(filepath.Join(i.secrets, "token"), []byte(token), 0o600))
}

// run is the command that runs the image as the DaemonSet does, but for privileged, which is for devices: simulated GPUs have
// none, and a machine of CI may not grant it.
func (i image) run(host string, more ...string) []string {
	i.Helper()
	container := manifest[*appsv1.DaemonSet](i.T).Spec.Template.Spec.Containers[0]
	args := []string{"run", "--read-only", "--pid", "host", "--network", "host", "--volume", host + ":/host",
		"--volume", i.secrets + ":/var/run/secrets/kubernetes.io/serviceaccount:ro", "--env", "NODE_NAME=" + nodeName,
		"--env", "KUBERNETES_SERVICE_HOST=localhost", "--env", fmt.Sprint("KUBERNETES_SERVICE_PORT=", i.api)}
	args = append(append(append(args, more...), container.Image), container.Args...)
	return append(args, "--simulate", i.simulate, "--folder", i.folder, "--plugins", i.plugins, "--registry", i.registry)
}

// TestImage: the image serves this machine, with the token of its pod, which expires.
func TestImage(t *testing.T) {
	i := newImage(t)
	i.refused()
	name := filepath.Base(i.folder)
	docker(t, i.run("/", "--detach", "--name", name)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(docker(t, "logs", name))
		}
		docker(t, "rm", "--force", name)
	})
	i.connect()
	i.pod("worker", "rtx-2060")
	claim := i.bound("worker")
	answer, err := i.dra.NodePrepareResources(context.Background(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{claim}})
	check(t, err)
	one := answer.Claims[claim.Uid]
	if one.GetError() != "" || len(one.Devices) != 1 {
		t.Fatalf("the claim is answered by %v", one)
	}
	if text := specification(t, one.Devices[0].CdiDeviceIds[0]); !strings.Contains(text, "GPU_COSPLAY_PRETTY=NVIDIA GeForce RTX 2060") {
		t.Errorf("its device is %s", text)
	}
	carried := filepath.Join(i.dir, "cosplay")
	docker(t, "cp", name+":/bin/cosplay", carried)
	if said, err := exec.Command("cmp", carried, filepath.Join(i.folder, "bin", "cosplay")).CombinedOutput(); err != nil {
		t.Errorf("the program on the host is not that of the image: %s", said)
	}
	check(t, i.client.CoreV1().Pods(namespace).Delete(context.Background(), account, *metav1.NewDeleteOptions(0)))
	i.await("the token is not valid", func() bool { return strings.Contains(i.prepareOne(claim), "Unauthorized") })
	i.newToken(i.tokenOfPod())
	i.await("the next token is read", func() bool { return i.prepareOne(claim) == "" })
	removed, err := i.dra.NodeUnprepareResources(context.Background(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{claim}})
	check(t, err)
	if said := removed.Claims[claim.Uid].GetError(); said != "" {
		t.Error(said)
	}
	docker(t, "stop", name)
	if code := docker(t, "inspect", "--format", "{{.State.ExitCode}}", name); strings.TrimSpace(code) != "0" {
		t.Errorf("it ends with %s", code)
	}
}

// refused: on a host where the image cannot work, it reports why.
func (i image) refused() {
	i.Helper()
	bare, noLibc := i.TempDir(), i.TempDir()
	check(i.T, os.Mkdir(filepath.Join(noLibc, "proc"), 0o755))
	for want, args := range map[string][]string{
		`has no /proc: .* Fix: mount / of the host there`:                 i.run(bare, "--rm"),
		`cosplay does not start on this host: .* It needs glibc 2\.34 or`: i.run(noLibc, "--rm", "--volume", "/proc:/host/proc"),
	} {
		if said, err := exec.Command("docker", args...).CombinedOutput(); err == nil || !regexp.MustCompile(want).Match(said) {
			i.Errorf("%v: %s, and not %s", err, said, want)
		}
	}
}
