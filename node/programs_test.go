package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// post posts a pod with a container, which is of Debian and prints what nvidia-smi sees if it names nothing else.
func (n *node) post(name string, c corev1.Container, claims []corev1.PodResourceClaim) {
	n.Helper()
	c.Name, c.ImagePullPolicy = "c", corev1.PullNever
	if c.Command == nil {
		c.Image, c.Command = "docker.io/cosplay-test/debian:latest", []string{"sh", "-c", look}
	}
	_, err := n.client.CoreV1().Pods("default").Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			ResourceClaims: claims, Containers: []corev1.Container{c}}}, metav1.CreateOptions{})
	check(n.T, err)
}

// look prints what NVIDIA's own nvidia-smi sees without any variable, and what MPS has for the pod, and waits.
const look = "env -i /usr/bin/nvidia-smi --query-gpu=name,memory.total --format=csv,noheader; env | grep CUDA_MPS && ls $CUDA_MPS_PIPE_DIRECTORY; exec sleep inf"

// compute is a program of PyTorch: it fills the memory of its device, GiB by GiB, and multiplies matrices.
const compute = `import os, torch
held = []
try:
    while True:
        held.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    pass
a = torch.arange(4.0, device="cuda").reshape(2, 2)
print(torch.cuda.get_device_name(), len(held), "GiB", (a @ a).tolist(), "as", os.getuid())
`

// pytorch: PyTorch of Debian computes in a pod, up to the memory of the target, as root and as another user.
func (n *node) pytorch(t *testing.T) {
	images, err := os.Open(filepath.Join(os.Getenv("COSPLAY_BED"), "torch.tar"))
	check(t, err)
	defer images.Close()
	check(t, n.ctr(images, "images", "import", "--local", "-"))
	limits := corev1.ResourceList{extended + "rtx-2060": resource.MustParse("1")}
	for _, user := range []int64{0, 1000} {
		n.post(fmt.Sprint("torch-", user), corev1.Container{Image: "docker.io/cosplay-test/torch:latest", Command: []string{"sh", "-c", `python3 -c "$0"; exec sleep inf`, compute},
			SecurityContext: &corev1.SecurityContext{RunAsUser: &user}, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}, nil)
	}
	for _, user := range []int64{0, 1000} {
		n.sees(fmt.Sprint("torch-", user), fmt.Sprint("NVIDIA GeForce RTX 2060 5 GiB [[2.0, 3.0], [6.0, 11.0]] as ", user))
	}
}

// processes are those of a program.
func processes(t *testing.T, program string) (all []int) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	for _, file := range found {
		line, _ := os.ReadFile(file)
		if words := strings.ReplaceAll(string(line), "\x00", " "); strings.HasPrefix(words[strings.LastIndexByte(words[:strings.IndexByte(words+" ", ' ')], '/')+1:], program+" ") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			check(t, err)
			all = append(all, pid)
		}
	}
	return all
}

const mpsControl = "nvidia-cuda-mps-control -d" // not one that asks a daemon

// mps: two claims share a GPU by MPS: one control daemon of NVIDIA's, whose folder both pods have. No GPU is there, so what its
// clients get of the GPU is what the simulator says.
func (n *node) mps(t *testing.T) {
	restart := func(sharing string) {
		n.endDriver()
		check(t, os.Remove(n.socket()))
		n.sharing = sharing
		n.after(n.startDriver)
	}
	restart("mps")
	whole := fmt.Sprintf("device.attributes[%q].profile == \"whole\"", driverName)
	for _, name := range []string{"half", "more"} {
		n.runClaim(name, whole, target("2060"), "6Gi")
	}
	for _, name := range []string{"half", "more"} {
		n.sees(name, a2060)
		for _, want := range []string{"CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", "control"} {
			n.log(name, want)
		}
	}
	if found := processes(t, mpsControl); len(found) != 1 {
		t.Errorf("there are %d control daemons", len(found))
	}
	if now := string(hardware(t, n.projects)); strings.Count(now, `"compute_mode": "exclusive process"`) != 1 {
		t.Errorf("the host is %s", now)
	}
	n.remove()
	if found := processes(t, mpsControl); len(found) != 0 {
		t.Errorf("control daemons are left: %v", found)
	}
	restart("time-slice")
}
