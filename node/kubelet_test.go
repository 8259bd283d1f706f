package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cosplay/internal/need"
)

// node is a cluster whose node is real: kubelet, containerd, and the driver as a program. scripts/check-cluster starts the tests
// in namespaces, because kubelet writes to fixed places of its machine.
type node struct {
	*bed
	whole     *testing.T // of all stories; that of the bed is a story's
	endDriver func()
	before    []byte // the host as it was
}

// containerdConfig is of version 2, which containerd 1.7 and 2 read.
const containerdConfig = `version = 2
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
[grpc]
address = "%[1]s/containerd.sock"
[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = "docker.io/cosplay-test/pause:latest"
enable_cdi = true
restrict_oom_score_adj = true
[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = "%[1]s/cni"
conf_dir = "%[1]s/cni"
[plugins.'io.containerd.grpc.v1.cri'.containerd]
snapshotter = "overlayfs"
`

// network gives pods an address and no connection: a node without a network is not ready. Its name is that of the plugin for
// the loopback device, which containerd calls too.
const network = `#!/bin/sh
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "'$CNI_IFNAME'", "sandbox": "'$CNI_NETNS'"}], "ips": [{"address": "10.99.1.1/24", "interface": 0}]}'
[ "$CNI_COMMAND" != VERSION ] || echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0"]}'
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
	n := &node{bed: newControlPlane(t, simulate), whole: t}
	n.sharing = "time-slice"
	t.Setenv("XDG_STATE_HOME", n.dir) // of the daemons of MPS
	if dir, there := need.MPS(t); there {
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	}
	n.addClasses()
	t.Cleanup(n.unmount)
	programs := os.Getenv("COSPLAY_BED")
	n.start(filepath.Join(programs, "kube-controller-manager"), "--kubeconfig", n.kubeconfig, "--leader-elect=false", "--secure-port", fmt.Sprint(freePort(t)),
		"--controllers=*,-serviceaccount-token-controller", "--authentication-kubeconfig", n.kubeconfig, "--authorization-kubeconfig", n.kubeconfig)
	check(t, os.Mkdir(n.file("cni"), 0o755))
	check(t, os.WriteFile(n.file("cni/loopback"), []byte(network), 0o755))
	check(t, os.WriteFile(n.file("cni/bed.conflist"), []byte(`{"cniVersion": "1.0.0", "name": "bed", "plugins": [{"type": "loopback"}]}`), 0o600))
	check(t, os.WriteFile(n.file("containerd.toml"), fmt.Appendf(nil, containerdConfig, n.dir), 0o600))
	n.start("containerd", "--config", n.file("containerd.toml"))
	n.await("containerd", func() bool { return n.ctr(nil, "version") == nil })
	images, err := os.Open(filepath.Join(programs, "images.tar"))
	check(t, err)
	defer images.Close()
	check(t, n.ctr(images, "images", "import", "--local", "-"))
	check(t, os.WriteFile(n.file("kubelet.yaml"), fmt.Appendf(nil, kubeletConfig, n.dir), 0o600))
	n.start(filepath.Join(programs, "kubelet"), "--config", n.file("kubelet.yaml"), "--kubeconfig", n.kubeconfig, "--hostname-override", nodeName, "--root-dir", n.file("kubelet"), "--node-ip", address)
	n.await("the node is ready", func() bool {
		node, err := n.client.CoreV1().Nodes().Get(context.Background(), nodeName, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
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
		"--simulate", n.simulate, "--plugins", n.plugins, "--registry", n.registry, "--sharing", n.sharing, "--check-every", "2s")
	n.awaitDevices()
}

// run posts a pod with one line, limits: {cosplay.dev/TARGET: 1}, that prints what nvidia-smi sees and waits.
func (n *node) run(name, target string, user int64) {
	n.Helper()
	limits := corev1.ResourceList{corev1.ResourceName(extended + target): resource.MustParse("1")}
	n.post(name, corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsUser: &user}, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}, nil)
}

// runClaim posts a claim of the plain class, and a pod with it.
func (n *node) runClaim(name, expression, parameters string, memory string) {
	n.Helper()
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: "cosplay", Selectors: []resourceapi.DeviceSelector{selector("%s", expression)}}
	if memory != "" {
		request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{capacityMemory: resource.MustParse(memory)}}
	}
	config := opaque("", parameters)
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: request}},
		Config:   []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: config.DeviceConfiguration}},
	}}}
	_, err := n.client.ResourceV1().ResourceClaims("default").Create(context.Background(), claim, metav1.CreateOptions{})
	check(n.T, err)
	n.post(name, corev1.Container{Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}, []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}})
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
		files, _ := filepath.Glob(n.file("logs/default_" + name + "_*/*/*.log"))
		for _, file := range files {
			one, _ := os.ReadFile(file)
			text = string(one)
		}
		return strings.Contains(text, piece)
	})
	return text
}

// remove deletes all pods and claims, and waits until the host is as it was.
func (n *node) remove() {
	n.Helper()
	ctx := context.Background()
	check(n.T, n.client.CoreV1().Pods("default").DeleteCollection(ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{}))
	n.await("the pods and their devices are removed", func() bool {
		left, err := n.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		projects, failed := n.all()
		return err == nil && failed == nil && len(left.Items)+len(projects) == 0
	})
	check(n.T, n.client.ResourceV1().ResourceClaims("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	untouched(n.T, n.projects, n.before)
}

// TestKubelet: pods on a node of a real kubelet. After each story everything is as it was.
func TestKubelet(t *testing.T) {
	n := newNode(t, "2 x h200")
	for _, story := range []struct {
		name string
		tell func(*node, *testing.T)
	}{{"seven", (*node).seven}, {"fleet", (*node).fleet}, {"pytorch", (*node).pytorch}, {"mixed", (*node).mixed}, {"refused", (*node).refused}, {"shared", (*node).shared}, {"mps", (*node).mps}, {"daemonset", (*node).daemonSet},
		{"killed", (*node).killed}, {"away", (*node).away}, {"rebooted", (*node).rebooted}} {
		t.Run(story.name, func(t *testing.T) {
			defer func() { n.T = n.whole }()
			n.T = t
			story.tell(n, t)
			n.remove()
		})
	}
}

// after starts a program that goes on after a story.
func (n *node) after(start func()) {
	story := n.T
	n.T = n.whole
	start()
	n.T = story
}

// sees waits until a pod runs and has printed what its GPU is.
func (n *node) sees(name, gpu string) {
	n.Helper()
	n.running(name)
	n.log(name, gpu)
}

const (
	a2060 = "NVIDIA GeForce RTX 2060, 6144 MiB"
	a3090 = "NVIDIA GeForce RTX 3090, 24576 MiB"
)

// seven pods with one line each, root's and another user's; NVIDIA's own nvidia-smi without any variable shows the target.
func (n *node) seven(t *testing.T) {
	start := time.Now()
	for i := range 7 {
		n.run(fmt.Sprint("worker-", i), "rtx-2060", int64(i%2*1000))
	}
	for i := range 7 {
		n.running(fmt.Sprint("worker-", i))
	}
	t.Logf("seven pods from their post to running: %.1f s", time.Since(start).Seconds())
	for i := range 7 {
		n.log(fmt.Sprint("worker-", i), a2060)
	}
}

// mixed: other targets beside each other, and slices where the scheduler puts them: 1g at 0 to 3, then 3g at 4.
func (n *node) mixed(t *testing.T) {
	first := fmt.Sprintf("device.attributes[%q].index == 0 && device.attributes[%q].profile == ", driverName, driverName)
	for i := range 4 {
		n.runClaim(fmt.Sprint("one-", i), first+`"1g.18gb"`, target("2060"), "")
		n.running(fmt.Sprint("one-", i))
	}
	n.runClaim("three", first+`"3g.71gb"`, target("3080"), "")
	n.run("big", "rtx-3090", 0)
	n.sees("one-3", a2060)
	n.sees("three", "NVIDIA GeForce RTX 3080, 10240 MiB")
	n.sees("big", a3090)
}

// refused: a claim that would need another clock waits, with the reason on claim and pod, while its neighbour goes on.
func (n *node) refused(t *testing.T) {
	first := fmt.Sprintf("device.attributes[%q].index == 0 && device.attributes[%q].profile == \"1g.18gb\"", driverName, driverName)
	n.runClaim("first", first, target("2060"), "")
	n.sees("first", a2060)
	locked := n.locks()
	n.runClaim("strict", first, strings.Replace(target("1660"), `"target"`, `"maxError":"5%","target"`, 1), "")
	n.await("an event of the pod", func() bool {
		all, err := n.client.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "strict" && e.Reason == "FailedPrepareDynamicResources" && strings.Contains(e.Note, "maxError is 5 %")
		})
	})
	claim, err := n.client.ResourceV1().ResourceClaims("default").Get(context.Background(), "strict", metav1.GetOptions{})
	check(t, err)
	if d := claim.Status.Devices; len(d) != 1 || d[0].Conditions[0].Reason != refused {
		t.Errorf("the claim's status is %+v", d)
	}
	if now := n.locks(); now != locked {
		t.Errorf("the clock locks were %s and are %s", locked, now)
	}
}

// locks are the clock locks of the GPUs.
func (n *node) locks() string {
	return fmt.Sprint(regexp.MustCompile(`"clock_lock_mhz": \d+`).FindAllString(string(hardware(n.T, n.projects)), -1))
}

// shared: two claims share a GPU, beside slices on the other; a third that does not fit waits.
func (n *node) shared(t *testing.T) {
	whole := fmt.Sprintf("device.attributes[%q].profile == \"whole\"", driverName)
	n.runClaim("half", whole, target("3090"), "24Gi")
	n.runClaim("more", whole, target("a100-80gb"), "80Gi")
	n.run("slice", "rtx-2060", 0)
	n.sees("half", a3090)
	n.sees("more", "NVIDIA A100")
	n.sees("slice", a2060)
	n.runClaim("late", whole, target("3090"), "48Gi")
	time.Sleep(2 * time.Second)
	if p, err := n.client.CoreV1().Pods("default").Get(context.Background(), "late", metav1.GetOptions{}); err != nil || p.Spec.NodeName != "" {
		t.Errorf("the third is on %q, %v", p.Spec.NodeName, err)
	}
}

// killed: a pod is deleted while the driver is down, and another one posted; both happen when it is back.
func (n *node) killed(t *testing.T) {
	n.run("old", "rtx-2060", 0)
	n.run("stays", "rtx-2060", 0)
	n.sees("old", a2060)
	n.sees("stays", a2060)
	n.endDriver()
	check(t, n.client.CoreV1().Pods("default").Delete(context.Background(), "old", metav1.DeleteOptions{}))
	n.run("new", "rtx-3090", 0)
	check(t, os.Remove(n.socket()))
	n.after(n.startDriver)
	n.sees("new", a3090)
	n.await("the old pod's device is removed", func() bool { known, err := n.known(); return err == nil && len(known) == 2 })
}

// away: the API server is away; programs go on, and what was asked for meanwhile happens when it is back.
func (n *node) away(t *testing.T) {
	n.run("one", "rtx-2060", 0)
	n.sees("one", a2060)
	locked := n.locks()
	n.endAPI()
	pause := 10 * time.Second
	if os.Getenv("COSPLAY_LONG") != "" {
		pause = time.Minute
	}
	time.Sleep(pause)
	n.after(func() { n.endAPI = n.startAPI() })
	n.awaitAPI()
	n.await("the scheduler", func() bool {
		_, err := n.client.CoreV1().Nodes().Get(context.Background(), nodeName, metav1.GetOptions{})
		return err == nil
	})
	n.run("two", "rtx-2060", 0)
	n.sees("two", a2060)
	if now := n.locks(); now != locked {
		t.Errorf("the clock locks were %s and are %s", locked, now)
	}
}

// rebooted: what a reboot of the host undoes is repaired, and an event reports it.
func (n *node) rebooted(t *testing.T) {
	n.run("one", "rtx-2060", 0)
	n.run("two", "rtx-2060", 0)
	n.sees("one", a2060)
	n.sees("two", a2060)
	locked := n.locks()
	_, err := (project{n.projects, "node"}).run(context.Background(), "sim", "reboot")
	check(t, err)
	n.await("the slices and the lock are back", func() bool {
		now := string(hardware(t, n.projects))
		return strings.Count(now, `"profile": "1g.18gb"`) == 2 && n.locks() == locked
	})
	n.await("the events", func() bool {
		all, err := n.client.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool { return e.Reason == repaired })
	})
	n.before = []byte(strings.Replace(string(n.before), bootID(n.before), bootID(hardware(t, n.projects)), 1))
}

// bootID is that of a simulated host.
func bootID(host []byte) string {
	return regexp.MustCompile(`"boot_id": "[^"]*"`).FindString(string(host))
}
