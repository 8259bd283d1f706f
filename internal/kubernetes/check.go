package kubernetes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"cosplay/catalog"
	"cosplay/internal/config"
	"cosplay/internal/place"
	"cosplay/internal/resource"
)

// instead is how a cluster words what attributes say elsewhere, in the order in which mistakes are reported.
var instead = []struct{ attribute, advice string }{
	{"fraction", "A cluster has classes for targets alone. Write a target."},
	{"gpus", "A pod of cosplay has one GPU. Write a session for each."},
	{"oversubscribe", "Sessions of a cluster do not share memory. Remove this line."},
	{"name", "The name of a Deployment follows from the session's address. Remove this line."},
	{"workspace", "Nodes do not have the folder. Add a volume to the Deployment, for example by kustomize: spec.template.spec.volumes with a persistentVolumeClaim, and volumeMounts with mountPath: /workspace."},
	{"volume", "Add the volume to the Deployment, for example by kustomize: spec.template.spec.volumes with a persistentVolumeClaim or a configMap, and volumeMounts."},
	{"ports", "Write a Service that selects the label app.kubernetes.io/name of the Deployment, or run: kubectl port-forward deployment/NAME 8888:8888."},
	{"network", "Pods join the cluster's network. Write a NetworkPolicy to restrict them."},
	{"ssh", "Remove this block. A shell is: kubectl exec -it deployment/NAME -- sh."},
	{"sudo", "Set the user of the pod by its securityContext, for example by kustomize."},
	{"capability", "cosplay-node decides it. Remove this line."},
	{"restart", "A Deployment always restarts its program. For a program that ends, write a Job with the container of the manifest."},
	{"ttl", "A Deployment does not expire. Remove this line, and run kubectl delete or kubectl scale --replicas=0 at the time."},
	{"idle_timeout", "A Deployment does not expire. Remove this line, and run kubectl delete or kubectl scale --replicas=0 at the time."},
	{"stop_at", "A Deployment does not expire. Remove this line, and run kubectl delete or kubectl scale --replicas=0 at the time."},
	{"limits.shm_size", "Add a volume to the Deployment, for example by kustomize: emptyDir with medium: Memory and a sizeLimit, mounted at /dev/shm."},
	{"limits.pids", "kubelet limits processes: podPidsLimit in its configuration. Remove this line."},
	{"depends_on", "Kubernetes starts pods in any order. Let the program wait for what it needs, or add an init container by kustomize."},
	{"lifecycle", "Kubernetes applies what a manifest says. Remove this block."},
	{"fit.prefer", "A claim has no such parameter: cosplay-node matches the FP32 rate first. Remove this line."},
}

// Check reports what of the sessions of clusters cannot be written as manifests.
func Check(intent *config.Intent) hcl.Diagnostics {
	var c checker
	for i := range intent.Sessions {
		c.session(&intent.Sessions[i])
	}
	return c.inOrder()
}

type checker struct {
	diags hcl.Diagnostics
	seen  map[string]bool
}

// refuse adds an error, for all instances of a block once.
func (c *checker) refuse(at hcl.Range, summary, detail string) {
	key := at.String() + summary
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if !c.seen[key] {
		c.seen[key] = true
		c.diags = append(c.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
	}
}

// inOrder are the errors in the order of the files.
func (c *checker) inOrder() hcl.Diagnostics {
	slices.SortStableFunc(c.diags, func(a, b *hcl.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Subject.Filename, b.Subject.Filename), cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte))
	})
	return c.diags
}

// states is where a block has an attribute; false where it leaves it out.
func states(s *config.Session, attribute string) (hcl.Range, bool) {
	at := s.Ranges.At(attribute)
	return at, at != s.Ranges.Decl
}

func (c *checker) session(s *config.Session) {
	for _, one := range instead {
		if at, stated := states(s, one.attribute); stated {
			c.refuse(at, fmt.Sprintf("a session of a Kubernetes cluster has no %q", one.attribute), one.advice)
		}
	}
	c.gpu(s)
	c.program(s)
	for _, one := range []struct {
		attribute string
		share     *float64
	}{{"fit.tolerance", &s.Fit.Tolerance}, {"fit.max_error", s.Fit.MaxError}} {
		if at, stated := states(s, one.attribute); stated && one.share != nil && !exact(*one.share) {
			c.refuse(at, fmt.Sprintf("%q cannot be written into a claim", one.attribute), "A claim has percentages from 0% to 9999% with at most three digits after the point. Round it.")
		}
	}
}

// gpu checks what a session says of its GPU.
func (c *checker) gpu(s *config.Session) {
	if _, err := catalog.Target(s.Target.Key); err != nil && s.Fraction == 0 {
		c.refuse(s.Ranges.At("target"), fmt.Sprintf("cosplay-node does not know the target %q", s.Target.Key), "It has the catalog alone, and no target blocks. Name a GPU of the catalog: cosplay ls lists them.")
	}
	if at, _ := states(s, "sharing"); !slices.Contains([]resource.Sharing{resource.SharingAuto, resource.SharingMIG, resource.SharingExclusive}, s.Sharing) {
		c.refuse(at, fmt.Sprintf("a session of a Kubernetes cluster cannot have sharing = %q", s.Sharing), "cosplay-node gives MIG slices and whole GPUs. Write \"mig\" or \"exclusive\", or remove the line.")
	}
	if at, _ := states(s, "slice"); (resource.Slice{Profile: s.Slice}).Divides() || strings.Contains(s.Slice, "+") {
		c.refuse(at, fmt.Sprintf("cosplay-node does not publish %s", s.Slice), "It publishes GPU instances, like 1g.18gb, and whole GPUs. Name one of these, or remove the line.")
	}
	if s.GPU != nil && s.GPU.UUID == "" {
		c.refuse(s.GPU.Range, "the GPU of a cluster is named by its UUID", "Each node has a GPU 0. Write the UUID, which cosplay plan --verbose shows.")
	}
}

// program checks what a session runs.
func (c *checker) program(s *config.Session) {
	if _, stated := states(s, "image"); !stated {
		c.refuse(s.Ranges.Decl, `"image" is missing`, "Nodes do not have the image that cosplay builds. Add a line like: image = \"registry.example/trainer:1\"")
	}
	if len(s.Command) == 0 && len(s.Spec.Entrypoint) == 0 {
		c.refuse(s.Ranges.Decl, `"command" is missing`, "Elsewhere the session would stay up, idle. Add command = [\"sleep\", \"infinity\"] for that, or entrypoint = \"image\" for the program of the image.")
	}
	at, _ := states(s, "env")
	if len(s.Secret) > 0 {
		c.refuse(at, "a sensitive value cannot be written into a manifest", "Manifests are kept in git. Remove it from env, and add it to the Deployment by kustomize: env with valueFrom: secretKeyRef.")
	}
	for name := range s.Env {
		if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			c.refuse(at, fmt.Sprintf("Kubernetes has no environment variable %q", name), "A name there has printable ASCII characters.")
		}
	}
}

// CheckClasses reports what of the sessions only a pinned claim can say.
func CheckClasses(sessions []config.Session) hcl.Diagnostics {
	var c checker
	classes := map[string]bool{} // by target
	for i := range sessions {
		s := &sessions[i]
		for _, attribute := range []string{"fit.tolerance", "fit.max_error", "strict", "gpu", "slice", "sharing"} {
			if at, stated := states(s, attribute); stated {
				c.refuse(at, fmt.Sprintf("only a pinned session has %q", attribute), "Without --pin a pod names the class of its target, which has no other parameters. Run cosplay manifests --pin, or remove the line.")
			}
		}
		if _, asked := classes[s.Target.Key]; !asked {
			classes[s.Target.Key] = hasClass(s.Target)
		}
		if !classes[s.Target.Key] {
			c.refuse(s.Ranges.At("target"), fmt.Sprintf("there is no device class of %s", s.Target.Key), "No GPU of the catalog comes within half or twice its rate. Run cosplay manifests --pin.")
		}
	}
	return c.inOrder()
}

// hasClass reports whether cosplay-node makes a class for a target.
func hasClass(t resource.Target) bool {
	return slices.ContainsFunc(catalog.Hosts(), func(h catalog.Host) bool {
		_, fits := place.Alone(h.Model, t)
		return fits
	})
}

// parametersOf are those of the claim of a session: what its block states.
func parametersOf(s config.Session) parameters {
	p := parameters{APIVersion: version, Kind: "Session", Target: text(s.Target.Key), Strict: s.Strict}
	if _, stated := states(&s, "fit.tolerance"); stated {
		p.Tolerance = percent(s.Fit.Tolerance)
	}
	if s.Fit.MaxError != nil {
		p.MaxError = percent(*s.Fit.MaxError)
	}
	return p
}

const thousandths = 100 * 1000 // of a percent

func percent(share float64) text {
	return text(strconv.FormatFloat(math.Round(share*thousandths)/1000, 'f', -1, 64) + "%")
}

// exact reports whether percent loses nothing, in the form that cosplay-node accepts.
func exact(share float64) bool {
	return share >= 0 && share < 100 && math.Abs(share*thousandths-math.Round(share*thousandths)) < 1e-6
}
