package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installed runs the driver as the DaemonSet of the manifests, with its image and the account of an admin, until end. Its probe
// does not wait as long as that of the manifests.
func (n *node) installed() (end func()) {
	n.Helper()
	ctx := context.Background()
	archives, err := filepath.Glob("../dist/cosplay-node-*-linux-" + runtime.GOARCH + ".tar")
	if err != nil || len(archives) != 1 {
		n.Fatalf("the archives of the image are %v. Fix: make image", archives)
	}
	check(n.T, n.ctr(nil, "images", "import", "--local", archives[0]))
	_, err = n.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	check(n.T, err)
	set := manifest[*appsv1.DaemonSet](n.T)
	pod := &set.Spec.Template.Spec
	pod.NodeSelector = nil
	c := &pod.Containers[0]
	c.Args = append(c.Args, "--simulate", n.simulate, "--folder", n.folder, "--plugins", n.plugins, "--registry", n.registry,
		"--kubeconfig", "/host"+n.kubeconfig, "--sharing", "mps", "--check-every", "2s")
	for _, name := range []string{"PATH", "XDG_STATE_HOME"} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: os.Getenv(name)})
	}
	c.LivenessProbe.InitialDelaySeconds, c.LivenessProbe.PeriodSeconds, c.LivenessProbe.TimeoutSeconds = 0, 1, 2
	c.StartupProbe = c.LivenessProbe.DeepCopy() // in place of the delay
	c.StartupProbe.FailureThreshold = 60
	c.LivenessProbe.TerminationGracePeriodSeconds = new(int64(1))
	_, err = n.client.AppsV1().DaemonSets(namespace).Create(ctx, set, metav1.CreateOptions{})
	check(n.T, err)
	n.Cleanup(func() {
		if n.whole.Failed() {
			files, _ := filepath.Glob(n.file("logs/" + namespace + "_*/*/*.log"))
			for _, file := range files {
				text, _ := os.ReadFile(file)
				n.whole.Logf("%s", text[max(0, len(text)-3000):])
			}
		}
	})
	n.await("the driver has started", func() bool {
		all := n.drivers()
		if len(all) != 1 || len(all[0].Status.ContainerStatuses) != 1 {
			return false
		}
		started := all[0].Status.ContainerStatuses[0].Started
		return started != nil && *started
	})
	return func() {
		check(n.T, n.client.AppsV1().DaemonSets(namespace).Delete(ctx, set.Name, metav1.DeleteOptions{}))
		n.await("the driver ends", func() bool { return len(n.drivers()) == 0 })
	}
}

// drivers are the pods of the driver.
func (n *node) drivers() []corev1.Pod {
	n.Helper()
	all, err := n.client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	check(n.T, err)
	return all.Items
}

// daemonSet: the driver is the pod of its DaemonSet. kubelet restarts it when it hangs, and programs go on meanwhile.
func (n *node) daemonSet(t *testing.T) {
	n.endDriver()
	check(t, os.Remove(n.socket()))
	end := n.installed()
	n.run("before", "rtx-2060", 0)
	n.sees("before", a2060)
	whole := fmt.Sprintf("device.attributes[%q].profile == \"whole\"", driverName)
	n.runClaim("half", whole, target("3090"), "24Gi")
	n.sees("half", a3090)
	daemon := processes(t, mpsControl)
	found := processes(t, "cosplay-node")
	if len(found) != 1 || len(daemon) != 1 {
		t.Fatalf("the drivers are %v, and the control daemons %v", found, daemon)
	}
	if pod := n.drivers()[0]; pod.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("the driver was restarted: %+v", pod.Status)
	}
	check(t, syscall.Kill(found[0], syscall.SIGSTOP))
	n.await("kubelet restarts the driver", func() bool { return n.drivers()[0].Status.ContainerStatuses[0].RestartCount > 0 })
	n.run("after", "rtx-2060", 0)
	n.sees("after", a2060)
	if now := processes(t, mpsControl); !slices.Equal(now, daemon) {
		t.Errorf("the control daemon was %v, and is %v", daemon, now)
	}
	n.remove()
	end()
	n.after(n.startDriver)
}
