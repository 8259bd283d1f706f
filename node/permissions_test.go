package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

const namespace, account = "cosplay-system", "cosplay-node"

// install applies the manifests as an admin does, and returns the token of the driver.
func (b *bed) install() (token string) {
	b.Helper()
	if said, err := exec.Command("kubectl", "--kubeconfig", b.kubeconfig, "apply", "-k", manifests).CombinedOutput(); err != nil {
		b.Fatalf("kubectl apply -k: %v: %s", err, said)
	}
	return b.tokenOfPod()
}

// tokenOfPod creates the pod that the DaemonSet has on the node, and returns its token.
func (b *bed) tokenOfPod() string {
	b.Helper()
	ctx := context.Background()
	template := manifest[*appsv1.DaemonSet](b.T).Spec.Template
	template.Spec.NodeName = nodeName
	pod, err := b.client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: account}, Spec: template.Spec}, metav1.CreateOptions{})
	check(b.T, err)
	return b.token(&authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
}

// token is one of the driver's account, as kubelet gets it for a pod.
func (b *bed) token(boundTo *authenticationv1.BoundObjectReference) string {
	b.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: boundTo}}
	answer, err := b.client.CoreV1().ServiceAccounts(namespace).CreateToken(context.Background(), account, request, metav1.CreateOptions{})
	check(b.T, err)
	return answer.Status.Token
}

func (b *bed) prepareOne(c *drapb.Claim) (reason string) {
	b.Helper()
	answer, err := b.dra.NodePrepareResources(context.Background(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{c}})
	if err != nil {
		return err.Error()
	}
	return answer.Claims[c.Uid].GetError()
}

// TestPermissions runs the driver as the account of the manifests: it can do its work, it uses every permission that it has,
// it refuses to start without one of them, and the policy keeps it from the devices of other nodes.
func TestPermissions(t *testing.T) {
	b := newCluster(t, "1 x h200")
	token := b.install()
	b.kubeconfig = b.kubeconfigOf(account, token)
	driver, err := b.options.client()
	check(t, err)
	used := b.life()
	var granted []string
	for _, p := range permissions() {
		granted = append(granted, say(p))
		if p.Subresource == resourceapi.SubresourceDriver {
			continue // the API server asks for it beside resourceclaims/status, and records no request
		}
		if !slices.Contains(used, say(p)) {
			t.Errorf("the driver has not used the permission to %s", say(p))
		}
	}
	for _, u := range used {
		if !slices.Contains(granted, u) {
			t.Errorf("the driver has asked to %s, which is no permission of its", u)
		}
	}
	in := func(t *testing.T) *bed { one := *b; one.T = t; return &one }
	t.Run("WithoutStatus", func(t *testing.T) { in(t).withoutStatus(driver) })
	for _, p := range permissions() {
		t.Run(say(p), func(t *testing.T) { in(t).without(driver, p) })
	}
	t.Run("Policy", func(t *testing.T) { in(t).policy(driver) })
}

// life has the driver do all that it does, and returns the permissions that the API server has seen it use.
func (b *bed) life() (used []string) {
	b.Helper()
	ctx := context.Background()
	stop := b.drive()
	b.pod("worker", "rtx-2060")
	claim := b.bound("worker")
	if said := b.prepareOne(claim); said != "" {
		b.Fatal(said)
	}
	now, err := b.client.ResourceV1().ResourceClaims("default").Get(ctx, claim.Name, metav1.GetOptions{})
	check(b.T, err)
	if d := now.Status.Devices; len(d) != 1 || d[0].Conditions[0].Reason != prepared {
		b.Errorf("the status of a claim: %+v", d)
	}
	wrong := b.claimWithoutTarget()
	for range 2 { // the second time, the event is patched
		if said := b.prepareOne(wrong); !strings.Contains(said, "have to name a target") {
			b.Errorf("a claim without a target: %q", said)
		}
	}
	b.await("an event, twice", func() bool {
		all, err := b.client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool { return e.Reason == refused && e.Series != nil })
	})
	stop()
	// While the driver is down, the claim is deleted, and an admin changes what is published.
	now.Status.ReservedFor = nil
	_, err = b.client.ResourceV1().ResourceClaims("default").UpdateStatus(ctx, now, metav1.UpdateOptions{})
	check(b.T, err)
	want := b.published()
	b.disturb()
	stop = b.drive()
	b.await("the published devices are repaired", func() bool { return reflect.DeepEqual(b.published(), want) })
	b.await("what the deleted claim had is removed", func() bool { known, err := b.known(); return err == nil && len(known) == 0 })
	stop()
	return b.requests()
}

// claimWithoutTarget is one that the scheduler has allocated, for a pod, and that the driver refuses.
func (b *bed) claimWithoutTarget() *drapb.Claim {
	b.Helper()
	ctx := context.Background()
	request := resourceapi.DeviceRequest{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "cosplay"}}
	made, err := b.client.ResourceV1().ResourceClaims("default").Create(ctx, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "wrong"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request}}}}, metav1.CreateOptions{})
	check(b.T, err)
	_, err = b.client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &made.Name}},
		Tolerations:    []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}, metav1.CreateOptions{})
	check(b.T, err)
	b.await("a claim without a target is allocated", func() bool {
		now, err := b.client.ResourceV1().ResourceClaims("default").Get(ctx, made.Name, metav1.GetOptions{})
		return err == nil && now.Status.Allocation != nil
	})
	return &drapb.Claim{Namespace: "default", Name: made.Name, Uid: string(made.UID)}
}

// slices are the ResourceSlices of the cluster.
func (b *bed) slices() []resourceapi.ResourceSlice {
	b.Helper()
	all, err := b.client.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
	check(b.T, err)
	return all.Items
}

// published is how many devices and counter sets each slice has, in order.
func (b *bed) published() (all []string) {
	for _, s := range b.slices() {
		all = append(all, fmt.Sprintf("%d devices, %d counter sets", len(s.Spec.Devices), len(s.Spec.SharedCounters)))
	}
	slices.Sort(all)
	return all
}

// disturb removes a slice, adds one that the driver has not, and removes a device of a third.
func (b *bed) disturb() {
	b.Helper()
	ctx, client := context.Background(), b.client.ResourceV1().ResourceSlices()
	for _, s := range b.slices() {
		if len(s.Spec.SharedCounters) > 0 {
			check(b.T, client.Delete(ctx, s.Name, metav1.DeleteOptions{}))
			continue
		}
		more := s.DeepCopy()
		more.ObjectMeta = metav1.ObjectMeta{Name: "more"}
		_, err := client.Create(ctx, more, metav1.CreateOptions{})
		check(b.T, err)
		s.Spec.Devices = s.Spec.Devices[1:]
		_, err = client.Update(ctx, &s, metav1.UpdateOptions{})
		check(b.T, err)
	}
}

// requests are the permissions of the requests of the driver, which the API server has recorded.
func (b *bed) requests() (all []string) {
	b.Helper()
	log, err := os.Open(filepath.Join(b.dir, "audit.log"))
	check(b.T, err)
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb      string
			ObjectRef *struct{ APIGroup, Resource, Subresource string }
		}
		check(b.T, json.Unmarshal(lines.Bytes(), &entry))
		if at := entry.ObjectRef; at != nil && at.APIGroup != authorizationv1.GroupName {
			all = append(all, say(authorizationv1.ResourceAttributes{Group: at.APIGroup, Resource: at.Resource, Subresource: at.Subresource, Verb: entry.Verb}))
		}
	}
	check(b.T, lines.Err())
	slices.Sort(all)
	return slices.Compact(all)
}

// take removes a permission from the role, for the time of a test.
func (b *bed) take(driver kubernetes.Interface, p authorizationv1.ResourceAttributes) {
	b.Helper()
	roles, ctx := b.client.RbacV1().ClusterRoles(), context.Background()
	set := func(rules []rbacv1.PolicyRule, allowed bool) {
		now, err := roles.Get(ctx, account, metav1.GetOptions{})
		check(b.T, err)
		now.Rules = rules
		_, err = roles.Update(ctx, now, metav1.UpdateOptions{})
		check(b.T, err)
		b.await("the role is in effect", func() bool {
			answer, err := driver.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &p}}, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed == allowed
		})
	}
	now, err := roles.Get(ctx, account, metav1.GetOptions{})
	check(b.T, err)
	less := now.DeepCopy().Rules
	for i, rule := range less {
		if slices.Contains(grants(rule), say(p)) {
			less[i].Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == p.Verb })
		}
	}
	less = slices.DeleteFunc(less, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	set(less, false)
	b.Cleanup(func() { set(now.Rules, true) })
}

// without: without one permission, the driver does not start, and says which.
func (b *bed) without(driver kubernetes.Interface, p authorizationv1.ResourceAttributes) {
	b.take(driver, p)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := b.serve(ctx)
	if want := "the account of cosplay-node may not " + say(p) + ". Fix: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		b.Errorf("%v, and not %q", err, want)
	}
	if _, err := os.Stat(b.socket()); err == nil {
		b.Error("kubelet has a socket of the driver that is not served")
	}
}

// withoutStatus: a driver that loses the permission to write its part of a status prepares devices, and logs what it lacks.
func (b *bed) withoutStatus(driver kubernetes.Interface) {
	log := filepath.Join(b.TempDir(), "log")
	file, err := os.Create(log)
	check(b.T, err)
	klog.LogToStderr(false)
	klog.SetOutput(file)
	defer klog.LogToStderr(true)
	stop := b.drive()
	defer stop()
	for _, p := range permissions() {
		if p.Subresource == resourceapi.SubresourceDriver {
			b.take(driver, p)
		}
	}
	b.pod("second", "rtx-2060")
	claim := b.bound("second")
	if said := b.prepareOne(claim); said != "" {
		b.Error(said)
	}
	klog.Flush()
	text, err := os.ReadFile(log)
	check(b.T, err)
	if !regexp.MustCompile(`The status of the claim is not written.* requires resource=.*resourceclaims/driver.*associated-node:update`).Match(text) {
		b.Errorf("the log is\n%s", text)
	}
	_, err = b.dra.NodeUnprepareResources(context.Background(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{claim}})
	check(b.T, err)
}

// policy: the driver of a node changes only slices of this node and of its name, and a token of no node changes none.
func (b *bed) policy(driver kubernetes.Interface) {
	ctx := context.Background()
	slice := func(name, node, driver string) *resourceapi.ResourceSlice {
		return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	}
	others, err := b.client.ResourceV1().ResourceSlices().Create(ctx, slice("others", "n2", driverName), metav1.CreateOptions{})
	check(b.T, err)
	_, n2 := driver.ResourceV1().ResourceSlices().Create(ctx, slice("n2", "n2", driverName), metav1.CreateOptions{})
	_, gpu := driver.ResourceV1().ResourceSlices().Create(ctx, slice("gpu", nodeName, "gpu.nvidia.com"), metav1.CreateOptions{})
	others.Spec.Pool.Generation++
	_, update := driver.ResourceV1().ResourceSlices().Update(ctx, others, metav1.UpdateOptions{})
	remove := driver.ResourceV1().ResourceSlices().Delete(ctx, "others", metav1.DeleteOptions{})
	b.kubeconfig = b.kubeconfigOf("no-node", b.token(nil))
	loose, err := b.options.client()
	check(b.T, err)
	_, free := loose.ResourceV1().ResourceSlices().Create(ctx, slice("free", nodeName, driverName), metav1.CreateOptions{})
	for what, err := range map[string]error{"create on another node": n2, "create for another driver": gpu, "update": update, "delete": remove, "a token of no node": free} {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'cosplay-node'") {
			b.Errorf("%s: %v", what, err)
		}
	}
}
