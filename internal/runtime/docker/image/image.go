// Package image lists the images of an engine, and gets one: pulled from a registry, or built from files that are
// part of the binary.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"cosplay/internal/pattern"
)

// Engine is the part of a Docker engine that this package uses; a *client.Client is one.
type Engine interface {
	DaemonHost() string
	Ping(ctx context.Context) (types.Ping, error)
	ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error)
	ImageInspect(ctx context.Context, ref string, o ...client.ImageInspectOption) (image.InspectResponse, error)
	DistributionInspect(ctx context.Context, ref, login string) (registry.DistributionInspect, error)
	ImagePull(ctx context.Context, ref string, o image.PullOptions) (io.ReadCloser, error)
	ImageBuild(ctx context.Context, files io.Reader, o build.ImageBuildOptions) (build.ImageBuildResponse, error)
}

var _ Engine = (*client.Client)(nil)

// idLength is how many digits of an image's ID the docker command shows.
const idLength = 12

// bareID is a name that looks like such an ID.
var bareID = pattern.Of("^[0-9a-f]{12}$")

// Tags maps every name of an image to the image's ID. Names are in the form of Normal: name:tag and name@digest. An
// image has its ID as a name too, whole (sha256:...) and in its first 12 digits. It is one call.
func Tags(ctx context.Context, engine Engine) (map[string]string, error) {
	images, err := engine.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the engine's images: %w", err)
	}
	tags := map[string]string{}
	for _, i := range images {
		tags[i.ID] = i.ID
		if _, digits, _ := strings.Cut(i.ID, ":"); len(digits) >= idLength {
			tags[digits[:idLength]] = i.ID
		}
	}
	for _, i := range images {
		for _, name := range slices.Concat(i.RepoTags, i.RepoDigests) {
			if name, err := Normal(name); err == nil { // an image without a name has <none>
				tags[name] = i.ID
				// The engine prefers a name to an ID that looks like it.
				if bare := strings.TrimSuffix(name, ":latest"); bareID().MatchString(bare) {
					tags[bare] = i.ID
				}
			}
		}
	}
	return tags, nil
}

// Normal is an image's name as Docker shows it: without docker.io/library, and with a tag or a digest. debian becomes
// debian:latest, and debian:12@sha256:... debian@sha256:..., since engines use the digest alone.
func Normal(ref string) (string, error) {
	named, err := parse(ref)
	if err != nil {
		return "", err
	}
	return reference.FamiliarString(named), nil
}

func parse(ref string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, fmt.Errorf("%q is not the name of an image (%w); a name is like debian:12 or registry.example.com/team/image:tag", ref, err)
	}
	if digested, ok := named.(reference.Digested); ok {
		return reference.WithDigest(reference.TrimNamed(named), digested.Digest())
	}
	return reference.TagNameOnly(named), nil
}

// messages reads the progress messages of an engine. It returns an error among them.
func messages(r io.Reader, each func(jsonmessage.JSONMessage)) error {
	for decoder := json.NewDecoder(r); ; {
		var m jsonmessage.JSONMessage
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the engine's answer broke off: %w", err)
		case m.Error != nil:
			return m.Error
		}
		each(m)
	}
}
