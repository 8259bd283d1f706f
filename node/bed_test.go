package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

// bed is a cluster: etcd, API server and scheduler from the folder COSPLAY_BED, and the driver.
type bed struct {
	*testing.T
	options
	dir    string
	client kubernetes.Interface
	api    int // port of the API server

	startAPI func() (end func()) // the API server; end kills it
	endAPI   func()

	dra drapb.DRAPluginClient // of a test that plays kubelet
}

const address = "10.99.0.1" // of the cluster, in the namespaces of scripts/check-cluster

// newBed is a cluster with the device classes and the driver, which is an admin there.
func newBed(t *testing.T, simulate string) *bed {
	t.Helper()
	b := newCluster(t, simulate)
	b.addClasses()
	b.drive()
	return b
}

// newCluster starts a cluster with one node and no kubelet. The test plays kubelet: it asks the driver's socket to prepare the
// claims of pods that the scheduler has bound.
func newCluster(t *testing.T, simulate string) *bed {
	t.Helper()
	b := newControlPlane(t, simulate)
	b.addNode()
	return b
}

// audit has the API server record the requests of service accounts.
const audit = `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata","userGroups":["system:serviceaccounts"]},{"level":"None"}]}`

// drive runs the driver until stop, or the end of the test.
func (b *bed) drive() (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		check(b.T, <-served)
	})
	b.Cleanup(stop)
	b.connect()
	return stop
}

// connect waits for a driver, its socket and its devices.
func (b *bed) connect() {
	b.Helper()
	b.awaitDevices()
	connection, err := grpc.NewClient("unix://"+b.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(b.T, err)
	b.Cleanup(func() { _ = connection.Close() })
	b.dra = drapb.NewDRAPluginClient(connection)
}

// newControlPlane starts a cluster without nodes.
func newControlPlane(t *testing.T, simulate string) *bed {
	t.Helper()
	programs := os.Getenv("COSPLAY_BED")
	if programs == "" {
		t.Skip("COSPLAY_BED names no folder with kube-apiserver and kube-scheduler: make check-cluster")
	}
	b := &bed{T: t, dir: t.TempDir()}
	cosplay, err := filepath.Abs("../bin/cosplay")
	check(t, err)
	b.options = options{projects: projects{cosplay: cosplay, folder: b.file(fmt.Sprintf("bed-%d", os.Getpid())), simulate: simulate},
		node: nodeName, every: time.Minute, kubeconfig: b.file("admin.kubeconfig"), plugins: b.file("kubelet/plugins"), registry: b.file("kubelet/plugins_registry")}
	check(t, errors.Join(os.MkdirAll(b.plugins, 0o755), os.MkdirAll(b.registry, 0o755)))

	etcd, peers, api, scheduler := freePort(t), freePort(t), freePort(t), freePort(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	check(t, os.WriteFile(b.file("key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	check(t, os.WriteFile(b.file("tokens"), []byte("secret,admin,admin,system:masters\nstranger,stranger,stranger\n"), 0o600))
	check(t, os.WriteFile(b.file("audit"), []byte(audit), 0o600))
	b.api = api
	b.kubeconfigOf("admin", "secret")
	b.start("etcd", "--data-dir", b.file("etcd"), "--listen-client-urls", url(etcd), "--advertise-client-urls", url(etcd),
		"--listen-peer-urls", url(peers), "--initial-advertise-peer-urls", url(peers), "--initial-cluster", "default="+url(peers))
	b.startAPI = func() (end func()) {
		return b.start(filepath.Join(programs, "kube-apiserver"), "--etcd-servers", url(etcd), "--secure-port", fmt.Sprint(api), "--cert-dir", b.file("certs"),
			"--service-cluster-ip-range", "10.0.0.0/24", "--service-account-issuer", "https://bed", "--service-account-key-file", b.file("key"),
			"--service-account-signing-key-file", b.file("key"), "--token-auth-file", b.file("tokens"), "--authorization-mode", "RBAC",
			"--disable-admission-plugins", "ServiceAccount", "--allow-privileged", "--advertise-address", address,
			"--audit-policy-file", b.file("audit"), "--audit-log-path", b.file("audit.log"))
	}
	b.endAPI = b.startAPI()
	b.client, err = b.options.client()
	check(t, err)
	b.awaitAPI()
	b.start(filepath.Join(programs, "kube-scheduler"), "--kubeconfig", b.kubeconfig, "--authentication-kubeconfig", b.kubeconfig,
		"--authorization-kubeconfig", b.kubeconfig, "--leader-elect=false", "--secure-port", fmt.Sprint(scheduler))
	return b
}

func (b *bed) addClasses() {
	b.Helper()
	for _, class := range classes() {
		if _, err := b.client.ResourceV1().DeviceClasses().Create(context.Background(), class, metav1.CreateOptions{}); err != nil {
			b.Fatalf("the device class %s: %v", class.Name, err)
		}
	}
}

// kubeconfigOf writes a file with which a user reaches the API server.
func (b *bed) kubeconfigOf(user, token string) (file string) {
	b.Helper()
	file = b.file(user + ".kubeconfig")
	check(b.T, os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"bed",
"clusters":[{"name":"bed","cluster":{"server":"https://127.0.0.1:%d","insecure-skip-tls-verify":true}}],
"users":[{"name":"bed","user":{"token":%q}}],"contexts":[{"name":"bed","context":{"cluster":"bed","user":"bed"}}]}`, b.api, token), 0o600))
	return file
}

// file is the path of a file of the cluster.
func (b *bed) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) socket() string { return filepath.Join(b.plugins, driverName, "dra.sock") }

func (b *bed) awaitAPI() {
	b.Helper()
	b.await("the API server", func() bool {
		_, err := b.client.CoreV1().Namespaces().Get(context.Background(), "default", metav1.GetOptions{})
		return err == nil
	})
}

// awaitDevices waits until the driver answers and has published its devices.
func (b *bed) awaitDevices() {
	b.Helper()
	b.await("the driver's socket", func() bool { _, err := os.Stat(b.socket()); return err == nil })
	b.await("the driver's devices", func() bool {
		published, err := b.client.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
		return err == nil && len(published.Items) >= 2
	})
}

func url(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// start starts a program until the test ends. What it prints is shown if the test fails.
func (b *bed) start(program string, args ...string) (end func()) {
	b.Helper()
	c := exec.Command(program, args...)
	var said bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = b.dir, &said, &said
	check(b.T, c.Start())
	end = sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if b.Failed() {
			text := said.String()
			b.Logf("%s:\n%s", filepath.Base(program), text[max(0, len(text)-3000):])
		}
	})
	b.Cleanup(end)
	return end
}

func (b *bed) await(what string, done func() bool) {
	b.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	b.Fatalf("%s: not within three minutes", what)
}

func (b *bed) addNode() {
	b.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	made, err := b.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	check(b.T, err)
	made.Spec.Taints, made.Status = nil, node.Status
	_, err = b.client.CoreV1().Nodes().UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
	check(b.T, err)
}

// pod posts a pod with one line: limits: {cosplay.dev/TARGET: 1}.
func (b *bed) pod(name, target string) {
	b.Helper()
	limits := corev1.ResourceList{corev1.ResourceName(extended + target): resource.MustParse("1")}
	_, err := b.client.CoreV1().Pods("default").Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits}}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}, metav1.CreateOptions{})
	check(b.T, err)
}

// bound is the claim of a pod, once the scheduler has bound it.
func (b *bed) bound(pod string) *drapb.Claim {
	b.Helper()
	var claim *drapb.Claim
	b.await("the pod "+pod+" is bound", func() bool {
		p, err := b.client.CoreV1().Pods("default").Get(context.Background(), pod, metav1.GetOptions{})
		if err != nil || p.Spec.NodeName == "" || p.Status.ExtendedResourceClaimStatus == nil {
			return false
		}
		name := p.Status.ExtendedResourceClaimStatus.ResourceClaimName
		c, err := b.client.ResourceV1().ResourceClaims("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		claim = &drapb.Claim{Namespace: "default", Name: name, Uid: string(c.UID)}
		return true
	})
	return claim
}

// TestBed: seven pods with one line each, and one more that has to wait; all are prepared as the scheduler has chosen, and
// removed.
func TestBed(t *testing.T) {
	b := newBed(t, "1 x h200")
	start := time.Now()
	var claims []*drapb.Claim
	for i := range 7 {
		b.pod(fmt.Sprint("worker-", i), "rtx-2060")
	}
	for i := range 7 {
		claims = append(claims, b.bound(fmt.Sprint("worker-", i)))
	}
	answer, err := b.dra.NodePrepareResources(context.Background(), &drapb.NodePrepareResourcesRequest{Claims: claims})
	check(t, err)
	for _, c := range claims {
		one := answer.Claims[c.Uid]
		if one == nil || one.Error != "" || len(one.Devices) != 1 || len(one.Devices[0].CdiDeviceIds) != 1 {
			t.Fatalf("%s: %v", c.Name, one)
		}
		if text := specification(t, one.Devices[0].CdiDeviceIds[0]); !strings.Contains(text, "GPU_COSPLAY_PRETTY=NVIDIA GeForce RTX 2060") {
			t.Errorf("its device is %s", text)
		}
	}
	t.Logf("seven pods from their post to prepared: %.1f s", time.Since(start).Seconds())
	status, err := b.client.ResourceV1().ResourceClaims("default").Get(context.Background(), claims[0].Name, metav1.GetOptions{})
	check(t, err)
	if d := status.Status.Devices; len(d) != 1 || d[0].Conditions[0].Reason != prepared {
		t.Errorf("the status of a claim: %+v", d)
	}
	b.pod("eighth", "rtx-2060")
	time.Sleep(time.Second)
	if p, err := b.client.CoreV1().Pods("default").Get(context.Background(), "eighth", metav1.GetOptions{}); err != nil || p.Spec.NodeName != "" {
		t.Errorf("an eighth pod is on %q, %v", p.Spec.NodeName, err)
	}
	removed, err := b.dra.NodeUnprepareResources(context.Background(), &drapb.NodeUnprepareResourcesRequest{Claims: claims})
	check(t, err)
	for _, c := range claims {
		if one := removed.Claims[c.Uid]; one == nil || one.Error != "" {
			t.Errorf("%s: %v", c.Name, one)
		}
	}
	known, err := b.known()
	if err != nil || len(known) > 0 {
		t.Errorf("left: %v, %v", known, err)
	}
}
