package project_test

import (
	"errors"
	"maps"
	"testing"

	"cosplay/internal/config"
	"cosplay/internal/project"
	"cosplay/internal/resource"
)

// TestNoteOffered: a registry is asked once for each image that is always pulled, and an image that the engine lacks, or
// has under another name, is noted.
func TestNoteOffered(t *testing.T) {
	session := func(name, image, pull string) resource.PriorSession {
		return resource.PriorSession{Session: resource.Session{Address: resource.One(name), Slice: resource.Slice{Host: "lab"},
			Spec: resource.ContainerSpec{Image: image, Pull: pull}}}
	}
	prior := resource.Prior{Sessions: []resource.PriorSession{
		session("same", "same:1", resource.PullAlways), session("moved", "moved:1", resource.PullAlways), session("again", "moved:1", resource.PullAlways),
		session("missing", "kept:1", resource.PullMissing), session("asked", "now:1", resource.PullMissing), session("off", "off:1", resource.PullAlways),
		session("gone", "gone:1", resource.PullAlways), session("own", resource.DefaultImage, resource.PullAlways),
	}}
	engine := &resource.Engine{Images: map[string]string{"same:1": "A", "same@new": "A", "moved:1": "B", "moved@old": "B", "kept:1": "C", "now:1": "D", "off:1": "E", resource.DefaultImage: "F"}}
	wants := session("asked", "now:1", resource.PullAlways)
	p := &project.Fleet{Intent: &config.Intent{Sessions: []config.Session{{Address: wants.Address, Spec: wants.Spec}}}}
	asked := map[string]int{}
	diags := project.NoteOffered(p, prior, resource.Live{Hosts: []resource.Host{{Name: "lab", Engine: engine}}}, func(s resource.PriorSession) (string, error) {
		asked[s.Spec.Image]++
		if s.Spec.Image == "off:1" {
			return "", errors.New("the engine cannot reach the registry")
		}
		return s.Spec.Image[:len(s.Spec.Image)-2] + "@new", nil
	})
	if want := map[string]int{"same:1": 1, "moved:1": 1, "now:1": 1, "off:1": 1}; !maps.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	if want := map[string]string{"moved:1": "moved@new", "now:1": "now@new"}; !maps.Equal(engine.Offered, want) {
		t.Errorf("offered are %v, want %v", engine.Offered, want)
	}
	if len(diags) != 1 || diags.HasErrors() {
		t.Errorf("%v", diags)
	}
}
