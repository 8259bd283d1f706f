package kubernetes

import (
	"go.yaml.in/yaml/v3"
)

// The objects that are written, with the fields that cosplay sets, in the order in which people write them.
type (
	meta struct {
		Name        string          `yaml:"name,omitempty"`
		Namespace   string          `yaml:"namespace,omitempty"`
		Labels      map[string]text `yaml:"labels,omitempty"`
		Annotations map[string]text `yaml:"annotations,omitempty"`
	}

	deployment struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			Replicas int `yaml:"replicas"`
			Strategy struct {
				Type string `yaml:"type"`
			} `yaml:"strategy"`
			Selector struct {
				MatchLabels map[string]text `yaml:"matchLabels"`
			} `yaml:"selector"`
			Template struct {
				Metadata meta `yaml:"metadata"`
				Spec     pod  `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}

	pod struct {
		Affinity   *affinity   `yaml:"affinity,omitempty"`
		Claims     []podClaim  `yaml:"resourceClaims,omitempty"`
		Containers []container `yaml:"containers"`
	}

	podClaim struct {
		Name  string `yaml:"name"`
		Claim string `yaml:"resourceClaimName"`
	}

	container struct {
		Name      string     `yaml:"name"`
		Image     text       `yaml:"image"`
		Pull      text       `yaml:"imagePullPolicy,omitempty"`
		Command   []text     `yaml:"command,omitempty"`
		Args      []text     `yaml:"args,omitempty"`
		Env       []variable `yaml:"env,omitempty"`
		Resources resources  `yaml:"resources"`
	}

	variable struct {
		Name  text `yaml:"name"`
		Value text `yaml:"value"`
	}

	resources struct {
		Limits map[string]text `yaml:"limits,omitempty"`
		Claims []named         `yaml:"claims,omitempty"`
	}

	named struct {
		Name string `yaml:"name"`
	}

	affinity struct {
		Node struct {
			Required struct {
				Terms []term `yaml:"nodeSelectorTerms"`
			} `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
		} `yaml:"nodeAffinity"`
	}

	term struct {
		Fields []fieldMatch `yaml:"matchFields"`
	}

	fieldMatch struct {
		Key      string `yaml:"key"`
		Operator string `yaml:"operator"`
		Values   []text `yaml:"values"`
	}

	claimManifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
		Spec       struct {
			Devices struct {
				Requests []claimRequest `yaml:"requests"`
				Config   []opaqueConfig `yaml:"config"`
			} `yaml:"devices"`
		} `yaml:"spec"`
	}

	claimRequest struct {
		Name    string `yaml:"name"`
		Exactly struct {
			Class     string     `yaml:"deviceClassName"`
			Selectors []selector `yaml:"selectors"`
		} `yaml:"exactly"`
	}

	selector struct {
		CEL struct {
			Expression text `yaml:"expression"`
		} `yaml:"cel"`
	}

	opaqueConfig struct {
		Opaque struct {
			Driver     string   `yaml:"driver"`
			Parameters struct{} `yaml:"parameters"` // see withParameters
		} `yaml:"opaque"`
	}
)

// onNode keeps a pod on a node.
func onNode(name string) *affinity {
	var a affinity
	a.Node.Required.Terms = []term{{[]fieldMatch{{hostname, "In", []text{text(name)}}}}}
	return &a
}

// text is a text that no reader of YAML takes for something else, whichever version of YAML it reads.
type text string

// MarshalYAML quotes the text.
func (t text) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(t)}, nil
}
