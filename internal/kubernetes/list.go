package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxFile is the size of the largest file that is read, in bytes: some 3,000 GPUs.
const MaxFile = 128 << 20

// Command is what prints the file.
const Command = "kubectl get nodes,resourceslices,resourceclaims -A -o json"

// object is one object of a list. No other field is read: the file may have what cosplay has no need to know.
type object[Spec, Status any] struct {
	Metadata struct {
		Name        string
		Namespace   string
		UID         string
		Labels      map[string]string
		Annotations map[string]string
		Owners      []struct{ Kind, Name string } `json:"ownerReferences"`
	}
	Spec   Spec
	Status Status
}

type (
	nodeObject  = object[struct{ Unschedulable bool }, nodeStatus]
	sliceObject = object[sliceSpec, struct{}]
	claimObject = object[claimSpec, claimStatus]
)

type nodeStatus struct {
	Conditions []struct{ Type, Status string }
}

// notReady is whether the cluster states that a node does not work, or that it does not know.
func (s nodeStatus) notReady() bool {
	for _, c := range s.Conditions {
		if c.Type == "Ready" {
			return c.Status != "True"
		}
	}
	return false
}

type sliceSpec struct {
	Driver   string
	NodeName string
	Pool     struct {
		Name       string
		Generation int64
		Slices     int `json:"resourceSliceCount"`
	}
	Devices []deviceSpec
}

type deviceSpec struct {
	Name       string
	Attributes map[string]struct {
		Int    *int64
		String *string
	}
	Taints []struct{ Effect string }
}

type claimSpec struct {
	Devices struct {
		Requests []struct {
			Exactly *struct {
				Class string `json:"deviceClassName"`
			}
		}
		Config []struct {
			Opaque *struct {
				Driver     string
				Parameters json.RawMessage
			}
		}
	}
}

type claimStatus struct {
	Allocation *struct {
		Devices struct {
			Results []struct {
				Driver, Pool, Device string
				Admin                bool `json:"adminAccess"`
			}
		}
	}
}

// objects are those of the list that count.
type objects struct {
	nodes  []nodeObject
	slices []sliceObject
	claims []claimObject
}

// parse reads the list of objects.
func parse(data []byte) (o objects, err error) {
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	switch err := json.Unmarshal(data, &list); {
	case len(bytes.TrimSpace(data)) == 0:
		return o, errors.New("it is empty")
	case err != nil:
		return o, notJSON(data, err)
	case list.Kind != "List":
		return o, fmt.Errorf("its kind is %.40q, and that of kubectl's output is \"List\"", list.Kind)
	}
	for i, item := range list.Items {
		var of struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		err := json.Unmarshal(item, &of)
		switch {
		case err != nil:
		case of.APIVersion == "v1" && of.Kind == "Node":
			err = add(&o.nodes, item)
		case of.Kind != "ResourceSlice" && of.Kind != "ResourceClaim":
			continue // what else kubectl was asked for
		case of.APIVersion != "resource.k8s.io/v1":
			return o, fmt.Errorf("%s %.80q is of %.40q, and cosplay reads resource.k8s.io/v1, which Kubernetes has since 1.34", of.Kind, of.Metadata.Name, of.APIVersion)
		case of.Kind == "ResourceSlice":
			err = add(&o.slices, item)
		default:
			err = add(&o.claims, item)
		}
		if err != nil {
			return o, fmt.Errorf("item %d, %.40s %.80q, cannot be read: %w", i+1, of.Kind, of.Metadata.Name, err)
		}
	}
	return o, nil
}

func add[T any](all *[]T, item []byte) error {
	var one T
	err := json.Unmarshal(item, &one)
	*all = append(*all, one)
	return err
}

// notJSON says where a file is not JSON.
func notJSON(data []byte, err error) error {
	at := 0
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		at = int(syntax.Offset)
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(at, len(data))], []byte("\n")), err)
}
