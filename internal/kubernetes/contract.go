// Package kubernetes plans for clusters whose nodes run cosplay-node: it reads what kubectl printed of a cluster, and writes
// sessions as manifests. Pure, and without a client of the API.
package kubernetes

// What cosplay-node calls its things.
const (
	driver        = "gpu.cosplay.dev"     // the DRA driver, and the domain of its attributes
	version       = driver + "/v1alpha1"  // of the parameters of a claim
	plainClass    = "cosplay"             // the device class of claims that name their target themselves
	extended      = "cosplay.dev/"        // what users write before a target: limits: {cosplay.dev/rtx-2060: 1}
	sessionNote   = "cosplay.dev/session" // annotation with the address of a session
	managedBy     = "app.kubernetes.io/managed-by"
	appName       = "app.kubernetes.io/name"
	claimOfDevice = "gpu" // what a pod calls its claim, and a claim its request
)

// parameters are the opaque parameters of a claim, as cosplay-node reads them.
type parameters struct {
	APIVersion text `json:"apiVersion" yaml:"apiVersion"`
	Kind       text `json:"kind"`
	MaxError   text `json:"maxError,omitempty" yaml:"maxError,omitempty"`
	Strict     bool `json:"strict,omitempty" yaml:",omitempty"`
	Target     text `json:"target"`
	Tolerance  text `json:"tolerance,omitempty" yaml:",omitempty"`
}
