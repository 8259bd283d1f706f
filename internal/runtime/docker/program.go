package docker

import (
	"context"
	"fmt"
	"slices"

	"cosplay/internal/preflight"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// program is what cosplay-init runs for a session, from its entrypoint and its command; empty for nothing. image is the
// name or the ID of the image that the container has.
func (e *Engine) program(ctx context.Context, s resource.Session, image string) ([]string, error) {
	if !s.Spec.RunsImage() {
		return slices.Concat(s.Spec.Entrypoint, s.Command), nil
	}
	from, err := e.image(ctx, image)
	if err != nil {
		return nil, e.explain("reading the entrypoint of the image "+s.Spec.Image, err, about(s, 0))
	}
	all := from.run(s.Command)
	if len(all) == 0 {
		return nil, noProgram(s.Spec.Image)
	}
	return all, nil
}

// run is what the engine would run for these arguments: without any, those of the image.
func (m madeFrom) run(arguments []string) []string {
	if len(arguments) == 0 {
		arguments = m.cmd
	}
	return slices.Concat(m.entrypoint, arguments)
}

func noProgram(image string) prose.Advice {
	return prose.Advice{What: fmt.Sprintf("the image %s has no ENTRYPOINT and no CMD", image),
		Fix: `write the program as command = ["..."], or remove entrypoint`}
}

// checkEntrypoint reports an image without the program that is to run, and warns of one whose entrypoint is not run. An
// image that is still to be pulled is not known.
func (s survey) checkEntrypoint(ctx context.Context, session resource.Session) []preflight.Problem {
	image, asked := s.images[session.Spec.Image]
	if !asked {
		image, _ = s.runtime.Engine.image(ctx, session.Spec.Image) // an engine that fails is reported where it is needed
		s.images[session.Spec.Image] = image
	}
	switch spec := session.Spec; {
	case image.id == "":
	case spec.RunsImage() && len(image.run(session.Command)) == 0:
		return []preflight.Problem{{Attribute: "entrypoint", Summary: fmt.Sprintf("%s has no program to run", spec.Image), Advice: noProgram(spec.Image)}}
	case spec.Entrypoint == nil && len(image.entrypoint) > 0:
		return []preflight.Problem{{Attribute: "image", Warning: true, Summary: fmt.Sprintf("the ENTRYPOINT of %s is not run", spec.Image),
			Advice: prose.Advice{What: fmt.Sprintf("it is %s, and a session runs only what its block names", resource.CommandWords(image.entrypoint)),
				Fix: `write entrypoint = "image" to run it, or entrypoint = [] if it is not needed`}}}
	}
	return nil
}
