package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// permissions are those that the driver uses, one verb each.
func permissions() (all []authorizationv1.ResourceAttributes) {
	may := func(group, resource, subresource, name string, verbs ...string) {
		for _, verb := range verbs {
			all = append(all, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Name: name, Verb: verb})
		}
	}
	may("", "nodes", "", "", "get")
	may(resourceapi.GroupName, "resourceslices", "", "", "list", "watch", "create", "update", "delete")
	may(resourceapi.GroupName, "resourceclaims", "", "", "get", "list")
	may(resourceapi.GroupName, "resourceclaims", "status", "", "update")
	may(resourceapi.GroupName, "resourceclaims", resourceapi.SubresourceDriver, driverName, resourceapi.VerbPrefixAssociatedNode+"update")
	may(eventsv1.GroupName, "events", "", "", "create", "patch")
	return all
}

// permitted reports every permission that the account of the driver lacks. Without this check the driver would wait for ever
// for a list that it may not read, or prepare devices and not say so.
func permitted(ctx context.Context, client kubernetes.Interface) error {
	var lacks []string
	for _, p := range permissions() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &p}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking the API server for the permissions of the driver: %w", err)
		}
		if !answer.Status.Allowed {
			lacks = append(lacks, say(p))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New("the account of cosplay-node may not " + strings.Join(lacks, ", ") +
		". Fix: apply the ClusterRole of the same release again (deploy/kubernetes/rbac.yaml)")
}

// say is a permission as kubectl auth can-i names it: update resourceclaims.resource.k8s.io/status.
func say(p authorizationv1.ResourceAttributes) string {
	text := p.Verb + " " + strings.TrimSuffix(p.Resource+"."+p.Group, ".")
	if p.Subresource != "" {
		text += "/" + p.Subresource
	}
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	return text
}
