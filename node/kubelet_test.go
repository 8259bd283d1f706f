package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node is a cluster whose node is real: kubelet, containerd, and the driver as a program. scripts/check-cluster starts the tests
// in namespaces, because kubelet writes to fixed places of its machine.
type node struct {
	*bed
	endDriver func()
	before    []byte // the host as it was
}

const containerdConfig = `version = 3
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
[grpc]
address = "%[1]s/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "docker.io/cosplay-test/pause:latest"
[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
restrict_oom_score_adj = true
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
cgroupDriver: cgroupfs
failSwapOn: false
podLogsDir: %[1]s/logs
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
readOnlyPort: 0
healthzPort: 0
syncFrequency: 2s
evictionHard: {memory.available: 1Mi, nodefs.available: "0%%", imagefs.available: "0%%"}
`

func newNode(t *testing.T, simulate string) *node {
	t.Helper()
	if os.Getenv("COSPLAY_BED_NODE") == "" {
		t.Skip("kubelet runs in the namespaces of make check-cluster only")
	}
	n := &node{bed: newCluster(t, simulate)}
	t.Cleanup(n.unmount)
	programs := os.Getenv("COSPLAY_BED")
	n.start(filepath.Join(programs, "kube-controller-manager"), "--kubeconfig", n.kubeconfig, "--leader-elect=false", "--secure-port", fmt.Sprint(freePort(t)),
		"--controllers=*,-serviceaccount-token-controller", "--authentication-kubeconfig", n.kubeconfig, "--authorization-kubeconfig", n.kubeconfig)
	check(t, os.WriteFile(n.file("containerd.toml"), fmt.Appendf(nil, containerdConfig, n.dir), 0o600))
	n.start("containerd", "--config", n.file("containerd.toml"))
	n.await("containerd", func() bool { return n.ctr(nil, "version") == nil })
	images, err := os.Open(filepath.Join(programs, "images.tar"))
	check(t, err)
	defer images.Close()
	check(t, n.ctr(images, "images", "import", "--local", "-"))
	check(t, os.WriteFile(n.file("kubelet.yaml"), fmt.Appendf(nil, kubeletConfig, n.dir), 0o600))
	n.start(filepath.Join(programs, "kubelet"), "--config", n.file("kubelet.yaml"), "--kubeconfig", n.kubeconfig, "--hostname-override", nodeName, "--root-dir", n.file("kubelet"), "--node-ip", address)
	n.await("the node", func() bool {
		_, err := n.client.CoreV1().Nodes().Get(context.Background(), nodeName, metav1.GetOptions{})
		return err == nil
	})
	n.startDriver()
	n.before = hardware(t, n.projects)
	return n
}

// unmount unmounts what kubelet and containerd have mounted in the cluster's folder.
func (n *node) unmount() {
	mounts, err := os.ReadFile("/proc/self/mounts")
	check(n.T, err)
	lines := strings.Split(string(mounts), "\n")
	for _, line := range slices.Backward(lines) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], n.dir) {
			check(n.T, syscall.Unmount(fields[1], syscall.MNT_DETACH))
		}
	}
}

// ctr runs a command of containerd's client for the images and containers of kubelet.
func (n *node) ctr(input io.Reader, args ...string) error {
	c := exec.Command("ctr", append([]string{"--address", n.file("containerd.sock"), "-n", "k8s.io"}, args...)...)
	c.Stdin = input
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, out)
	}
	return nil
}

// startDriver starts the driver as a program, and waits until its devices are published.
func (n *node) startDriver() {
	n.Helper()
	program, err := filepath.Abs("../bin/cosplay-node")
	check(n.T, err)
	n.endDriver = n.start(program, "--node-name", n.node, "--kubeconfig", n.kubeconfig, "--cosplay", n.cosplay, "--folder", n.folder,
		"--simulate", n.simulate, "--plugins", n.plugins, "--registry", n.registry)
	n.awaitDevices()
}

// run posts a pod of an image with one line, limits: {cosplay.dev/TARGET: 1}, that runs a command of a shell and then waits.
func (n *node) run(name, target, image string, user int64, command ...string) {
	n.Helper()
	limits := corev1.ResourceList{corev1.ResourceName(extended + target): resource.MustParse("1")}
	_, err := n.client.CoreV1().Pods("default").Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			HostNetwork: true, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: corev1.PullNever, Command: command,
				SecurityContext: &corev1.SecurityContext{RunAsUser: &user}, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}},
		}}, metav1.CreateOptions{})
	check(n.T, err)
}

// running waits until a pod runs, or fails with what the cluster says of it.
func (n *node) running(name string) {
	n.Helper()
	var last *corev1.Pod
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		pod, err := n.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		check(n.T, err)
		if last = pod; pod.Status.Phase == corev1.PodRunning {
			return
		}
	}
	all, _ := n.client.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
	for _, e := range all.Items {
		n.Logf("%s %s: %s", e.Regarding.Name, e.Reason, e.Note)
	}
	n.Fatalf("%s is not running: %+v", name, last.Status)
}

// log is what a pod has printed, of which it waits for a piece.
func (n *node) log(name, piece string) (text string) {
	n.Helper()
	n.await("the log of "+name+" has "+piece, func() bool {
		files, _ := filepath.Glob(n.file("logs/default_" + name + "_*/c/*.log"))
		for _, file := range files {
			one, _ := os.ReadFile(file)
			text = string(one)
		}
		return strings.Contains(text, piece)
	})
	return text
}

func (n *node) remove(names ...string) {
	n.Helper()
	for _, name := range names {
		check(n.T, n.client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{}))
	}
	n.await("the pods and their devices are removed", func() bool {
		left, err := n.client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
		known, failed := n.known()
		return err == nil && failed == nil && len(left.Items)+len(known) == 0
	})
}

const sees = "nvidia-smi --query-gpu=name,memory.total --format=csv,noheader"

// TestKubelet: seven pods with one line each run on a node of a real kubelet, NVIDIA's own nvidia-smi in them shows the target,
// and with the last of them everything is as it was.
func TestKubelet(t *testing.T) {
	n := newNode(t, "1 x h200")
	start, names := time.Now(), []string{}
	for i := range 7 {
		names = append(names, fmt.Sprint("worker-", i))
		n.run(names[i], "rtx-2060", "docker.io/cosplay-test/debian:latest", int64(i%2*1000), "sh", "-c", "env -i /usr/bin/"+sees+"; exec sleep inf")
	}
	for _, name := range names {
		n.running(name)
	}
	t.Logf("seven pods from their post to running: %.1f s", time.Since(start).Seconds())
	for _, name := range names {
		n.log(name, "NVIDIA GeForce RTX 2060, 6144 MiB")
	}
	start = time.Now()
	n.remove(names...)
	t.Logf("seven pods deleted: %.1f s", time.Since(start).Seconds())
	untouched(t, n.projects, n.before)
}
