package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

// attack is a bed whose driver has the account of the manifests, with a claim that a victim has, and a stranger who may
// create pods and claims in the namespace default.
type attack struct {
	*bed
	stranger, driver kubernetes.Interface
	victim           *drapb.Claim
	table            strings.Builder
}

func newAttack(t *testing.T) *attack {
	t.Helper()
	ctx := context.Background()
	a := &attack{bed: newCluster(t, "1 x h200")}
	as := func(user, token string) kubernetes.Interface {
		o := a.options
		o.kubeconfig = a.kubeconfigOf(user, token)
		client, err := o.client()
		check(t, err)
		return client
	}
	a.stranger = as("stranger", "stranger")
	token := a.install()
	a.driver = as(account, token)
	a.kubeconfig = a.file(account + ".kubeconfig")
	roles := a.client.RbacV1()
	_, err := roles.Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}, Verbs: []string{"*"}}}}, metav1.CreateOptions{})
	check(t, err)
	_, err = roles.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "stranger"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "stranger"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "stranger"}}}, metav1.CreateOptions{})
	check(t, err)
	for name, labels := range map[string]map[string]string{"others": nil, "admins": {resourceapi.DRAAdminNamespaceLabelKey: "true"}} {
		_, err := a.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		check(t, err)
	}
	a.drive()
	return a
}

// row adds a claim to the table of docs/developers/measured/kubernetes.md. It fails if the reason is another.
func (a *attack) row(claim, by, reason, want string) {
	a.Helper()
	if reason == "" || !strings.Contains(reason, want) {
		a.Errorf("%s: %s answers %q, and not %q", claim, by, reason, want)
	}
	if len(reason) > 160 {
		reason = reason[:160] + "..."
	}
	fmt.Fprintf(&a.table, "| %s | %s | %s |\n", claim, by, strings.ReplaceAll(reason, "|", `\|`))
}

// post posts a claim for a small slice as JSON, whose parameters need not be any, and returns its UID.
func (a *attack) post(client kubernetes.Interface, namespace, name, class, parameters, request string) (types.UID, error) {
	body := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q},"spec":{"devices":{
"requests":[{"name":"gpu","exactly":{"deviceClassName":%q%s}}],"config":[{"opaque":{"driver":%q,"parameters":%s}}]}}}`, name, class, request, driverName, parameters)
	var made resourceapi.ResourceClaim
	err := client.ResourceV1().RESTClient().Post().Namespace(namespace).Resource("resourceclaims").SetHeader("Content-Type", "application/json").
		Body([]byte(body)).Do(context.Background()).Into(&made)
	return made.UID, err
}

// selecting is the part of a request that selects devices.
func selecting(expression string) string {
	text, _ := json.Marshal(fmt.Sprintf("device.attributes[%q].", driverName) + expression)
	return fmt.Sprintf(`,"selectors":[{"cel":{"expression":%s}}]`, text)
}

var (
	small     = selecting(`profile == "1g.18gb"`)
	firstSlot = selecting(fmt.Sprintf("profile == %q && device.attributes[%q].placement == 0", "1g.18gb", driverName))
)

// use posts a pod with a claim.
func (a *attack) use(client kubernetes.Interface, namespace, claim string) {
	a.Helper()
	_, err := client.CoreV1().Pods(namespace).Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: claim}, Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
		Tolerations:    []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}, metav1.CreateOptions{})
	check(a.T, err)
}

// allocated waits until the scheduler has a device for a claim.
func (a *attack) allocated(namespace, name string) (claim *resourceapi.ResourceClaim) {
	a.Helper()
	a.await("a device for the claim "+name, func() (done bool) {
		var err error
		claim, err = a.client.ResourceV1().ResourceClaims(namespace).Get(context.Background(), name, metav1.GetOptions{})
		return err == nil && claim.Status.Allocation != nil && len(claim.Status.ReservedFor) > 0
	})
	return claim
}

// refusedByDriver plays kubelet: the driver refuses a claim, with an event on it.
func (a *attack) refusedByDriver(what, namespace, name, want string) {
	a.Helper()
	now, err := a.client.ResourceV1().ResourceClaims(namespace).Get(context.Background(), name, metav1.GetOptions{})
	check(a.T, err)
	said := a.prepareOne(&drapb.Claim{Namespace: namespace, Name: name, Uid: string(now.UID)})
	_, reason, _ := strings.Cut(said, name+": ")
	a.row(what, "the driver", reason, want)
	a.await("an event on the claim "+name, func() bool {
		all, err := a.client.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == now.UID && e.Reason == refused && strings.Contains(e.Note, want)
		})
	})
	if strings.Contains(said, a.victim.Uid) || strings.Contains(said, a.folder) {
		a.Errorf("%s: the answer names another's claim: %s", what, said)
	}
	a.drop(namespace, name, string(now.UID))
}

// drop removes a claim and its pod as kubelet does.
func (a *attack) drop(namespace, name, uid string) {
	a.Helper()
	ctx := context.Background()
	answer, err := a.dra.NodeUnprepareResources(ctx, &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: namespace, Name: name, Uid: uid}}})
	if err != nil || answer.Claims[uid].GetError() != "" {
		a.Errorf("removing %s: %v, %v", name, answer, err)
	}
	_ = a.client.CoreV1().Pods(namespace).Delete(ctx, name, *metav1.NewDeleteOptions(0))
	claims := a.client.ResourceV1().ResourceClaims(namespace)
	now, err := claims.Get(ctx, name, metav1.GetOptions{})
	check(a.T, err)
	now.Status = resourceapi.ResourceClaimStatus{} // the controllers would, and do not run here
	now, err = claims.UpdateStatus(ctx, now, metav1.UpdateOptions{})
	check(a.T, err)
	now.Finalizers = nil
	_, err = claims.Update(ctx, now, metav1.UpdateOptions{})
	check(a.T, err)
	check(a.T, claims.Delete(ctx, name, metav1.DeleteOptions{}))
}

// TestBedForged posts the claims of TestForged to the API server, and others that are for what another has. The API server, the
// scheduler or the driver refuses each; the one who has a device keeps it, and nothing is left on the node. It prints the
// table of docs/developers/measured/kubernetes.md.
func TestBedForged(t *testing.T) {
	a := newAttack(t)
	before := hardware(t, a.projects)
	uid, err := a.post(a.client, "others", "victim", "cosplay", target("2060"), firstSlot)
	check(t, err)
	a.use(a.client, "others", "victim")
	a.allocated("others", "victim")
	a.victim = &drapb.Claim{Namespace: "others", Name: "victim", Uid: string(uid)}
	if said := a.prepareOne(a.victim); said != "" {
		t.Fatal(said)
	}
	running := hardware(t, a.projects)
	a.parameters()
	a.reach()
	if now := hardware(t, a.projects); string(now) != string(running) {
		t.Errorf("the host is\n%s\nand was\n%s", now, running)
	}
	a.drop("others", "victim", string(uid))
	untouched(t, a.projects, before)
	t.Logf("| claim | refused by | reason |\n|---|---|---|\n%s", a.table.String())
}

// parameters posts the claims of TestForged: what a class has there, these have themselves.
func (a *attack) parameters() {
	all := forged()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c, class, text := all[name], "cosplay", all[name].class
		if c.claim != "" {
			class, text = "cosplay-rtx-2060", c.claim
		}
		name = strings.ReplaceAll(strings.ToLower(name), " ", "-")
		_, err := a.post(a.stranger, "default", name, class, text, small)
		if err != nil {
			a.row(name, "the API server", err.Error(), map[bool]string{true: "may not be more than 10240 bytes", false: "invalid character"}[name == "long"])
			continue
		}
		a.use(a.stranger, "default", name)
		now := a.allocated("default", name)
		if c.device == "gpu-0-1g-18gb-0" {
			a.refusedByDriver(name, "default", name, c.want)
			continue
		}
		now.Status.Allocation.Devices.Results[0].Device = c.device
		a.status(name, now, c.want)
	}
}

// status forges the status of a claim: a stranger may not, and what an admin writes the driver refuses.
func (a *attack) status(what string, claim *resourceapi.ResourceClaim, want string) {
	a.Helper()
	ctx := context.Background()
	_, err := a.stranger.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	a.row(what+" in the status", "the API server", fmt.Sprint(err), "forbidden")
	claims := a.client.ResourceV1().ResourceClaims(claim.Namespace)
	allocation := claim.Status.Allocation
	claim.Status.Allocation, claim.Status.ReservedFor = nil, nil
	now, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	check(a.T, err)
	now.Status.Allocation = allocation
	now.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "pod"}}
	if _, err = claims.UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
		a.row(what+" in the status, by an admin", "the API server", err.Error(), "")
		a.drop(claim.Namespace, claim.Name, string(claim.UID))
		return
	}
	a.refusedByDriver(what+" in the status, by an admin", claim.Namespace, claim.Name, want)
}

// reach posts claims for what another has.
func (a *attack) reach() {
	ctx := context.Background()
	// The device, by its attributes.
	_, err := a.post(a.stranger, "default", "device", "cosplay", target("2060"), firstSlot)
	check(a.T, err)
	a.use(a.stranger, "default", "device")
	// The claim, by its name.
	a.use(a.stranger, "default", "victim")
	time.Sleep(2 * time.Second)
	for _, pod := range []struct{ what, name string }{{"the device of another, by a selector", "device"}, {"the claim of another namespace, by its name", "victim"}} {
		now, err := a.client.CoreV1().Pods("default").Get(ctx, pod.name, metav1.GetOptions{})
		check(a.T, err)
		reason := "the pod waits: its namespace has no such claim"
		for _, c := range now.Status.Conditions {
			reason = c.Message
		}
		a.row(pod.what, "the scheduler", strings.TrimSpace(reason), "")
		if now.Spec.NodeName != "" {
			a.Errorf("%s: the pod is bound", pod.what)
		}
	}
	own, err := a.client.ResourceV1().ResourceClaims("default").Get(ctx, "device", metav1.GetOptions{})
	check(a.T, err)
	_, err = a.post(a.stranger, "default", "good", "cosplay", target("2060"), small)
	check(a.T, err)
	a.use(a.stranger, "default", "good")
	good := a.allocated("default", "good")
	a.row("the UID of another's claim", "the driver", a.prepareOne(&drapb.Claim{Namespace: "default", Name: "good", Uid: a.victim.Uid}), "")
	a.drop("default", "good", string(good.UID))
	// The device, in the status.
	victim := a.allocated("others", "victim")
	own.Status.Allocation = victim.Status.Allocation.DeepCopy()
	a.status("the device of another", own, "")
	// A device, beside its owner, or one that others get too.
	_, err = a.post(a.stranger, "default", "admin", "cosplay", target("2060"), firstSlot+`,"adminAccess":true`)
	a.row("`adminAccess`", "the API server", fmt.Sprint(err), "admin access to devices requires")
	for name, request := range map[string]string{"owned": firstSlot, "free": small} {
		_, err = a.post(a.client, "admins", name, "cosplay", target("2060"), request+`,"adminAccess":true`)
		check(a.T, err)
		a.use(a.client, "admins", name)
		a.allocated("admins", name)
		a.refusedByDriver("`adminAccess` in a namespace of admins", "admins", name, "adminAccess")
	}
	// The account of the driver.
	victim.Status.Allocation.Devices.Results[0].Device = "gpu-0-1g-18gb-6"
	_, err = a.driver.ResourceV1().ResourceClaims("others").UpdateStatus(ctx, victim, metav1.UpdateOptions{})
	a.row("another device in the status, by the driver's account", "the API server", fmt.Sprint(err), "changing status.allocation")
}
