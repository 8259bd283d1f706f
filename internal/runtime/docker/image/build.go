package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/pkg/jsonmessage"

	"cosplay/internal/resource"
)

// The defaults of a build.
const (
	DefaultBase = "pytorch/pytorch:2.12.0-cuda12.6-cudnn9-devel"
	DefaultTag  = resource.DefaultImage
)

// cudaImages is the repository of CUDATag.
const cudaImages = "nvidia/cuda:"

//go:embed session
var embedded embed.FS

// BuildOptions are the options of the session image. All may be empty.
type BuildOptions struct {
	Base    string // Debian, Ubuntu or derived from one of them; default DefaultBase
	CUDATag string // instead of Base: a tag of nvidia/cuda
	Tag     string // name of the built image; default DefaultTag
	Version string // of cosplay, for a label
	NoCache bool   // run every step again
}

// settled checks the options and fills in the defaults.
func (o BuildOptions) settled() (BuildOptions, error) {
	if o.Base != "" && o.CUDATag != "" {
		return o, fmt.Errorf("base %s and CUDA tag %s both say what to build upon; give one of them", o.Base, o.CUDATag)
	}
	if o.CUDATag != "" {
		o.Base = cudaImages + o.CUDATag
	}
	var err error
	if o.Base, err = Normal(cmp.Or(o.Base, DefaultBase)); err != nil {
		return o, err
	}
	o.Tag, err = Normal(cmp.Or(o.Tag, DefaultTag))
	return o, err
}

// args are the build arguments that the Dockerfile declares.
func (o BuildOptions) args() map[string]*string {
	args := map[string]*string{"BASE_IMAGE": &o.Base}
	if o.Version != "" {
		args["COSPLAY_VERSION"] = &o.Version
	}
	return args
}

// Build builds the session image, and pulls its base if the engine lacks it. It reports each step to say. The builder
// is the engine's classic one, which every engine has, or BuildKit by the docker command if buildsByCommand says so.
func Build(ctx context.Context, engine Engine, o BuildOptions, say func(string)) error {
	o, err := o.settled()
	if err != nil {
		return err
	}
	byCommand, err := buildsByCommand(ctx, engine)
	if err != nil {
		return err
	}
	_, err = engine.ImageInspect(ctx, o.Base)
	if errdefs.IsNotFound(err) {
		err = Pull(ctx, engine, o.Base, say)
	}
	if err != nil {
		return err
	}
	files, err := sessionFiles()
	if err != nil {
		return err
	}
	say(fmt.Sprintf("%s: building upon %s", o.Tag, o.Base))
	r := &report{say: say, buildKit: byCommand}
	if byCommand {
		err = runCommand(ctx, engine, o, files, r)
	} else {
		err = runEngine(ctx, engine, o, files, r)
	}
	if err != nil {
		return r.failure(ctx, o, err)
	}
	say(o.Tag + ": built")
	return nil
}

// sessionFiles are the files of the build, as a tar. The same binary gives the same bytes.
func sessionFiles() (io.Reader, error) {
	files, err := fs.Sub(embedded, "session")
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.AddFS(files), w.Close()); err != nil {
		return nil, err
	}
	return &archive, nil
}

// runEngine builds by the engine's own classic builder.
func runEngine(ctx context.Context, engine Engine, o BuildOptions, files io.Reader, r *report) error {
	args, err := proxies(engine.DaemonHost())
	if err != nil {
		r.say(fmt.Sprintf("%s: without your proxy settings, since the docker configuration cannot be read: %v", o.Tag, err))
	}
	maps.Copy(args, o.args())
	answer, err := engine.ImageBuild(ctx, files, build.ImageBuildOptions{
		Version:     build.BuilderV1,
		Tags:        []string{o.Tag},
		BuildArgs:   args,
		NoCache:     o.NoCache,
		Remove:      true,
		ForceRemove: true,
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	defer r.end()
	return messages(answer.Body, func(m jsonmessage.JSONMessage) { r.hear(m.Stream) })
}
