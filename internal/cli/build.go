package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cosplay/internal/interrupt"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/runtime/docker"
	"cosplay/internal/runtime/docker/image"
)

func buildCommand(inv *invocation) *cobra.Command {
	o := image.BuildOptions{Version: Version}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the image that sessions run in by default",
		Long: `Build the session image from files that are part of this binary: a base image with ssh, sudo, git, Python, a compiler and similar tools. A session needs none of them: any image works as it is.

The engine's classic builder builds; DOCKER_BUILDKIT=1 asks for BuildKit, which needs the docker command.

Exit codes: 0 built; 1 error; 130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"base", "cuda-tag", "tag"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return fmt.Errorf("--%s is empty; leave it out for the default", name)
				}
			}
			return inv.runBuild(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Base, "base", "", "`image` to build upon, Debian or Ubuntu (default "+image.DefaultBase+")")
	flags.StringVar(&o.CUDATag, "cuda-tag", "", "build upon nvidia/cuda:`TAG` instead")
	flags.StringVar(&o.Tag, "tag", image.DefaultTag, "`name` of what is built")
	flags.BoolVar(&o.NoCache, "no-cache", false, "build every step again")
	return cmd
}

func (inv *invocation) runBuild(ctx context.Context, o image.BuildOptions) error {
	ctx, stop := interrupt.Context(ctx, func() {}, func() { os.Exit(exitInterrupted) })
	defer stop()
	interrupt.OutliveReaders()
	var err error
	if o.Tag, err = image.Normal(o.Tag); err != nil {
		return fmt.Errorf("--tag: %w", err)
	}
	id, err := inv.buildImage(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(inv.Err, "Stopped. The steps that were built are kept: the next build continues from there.")
		return exit(exitInterrupted)
	case err != nil:
		return err
	case inv.json:
		return render.JSON(inv.Out, public.Built{Format: public.V1, Image: o.Tag, ID: id})
	}
	fmt.Fprintf(inv.Out, "Built %s (%s). For a session to run in it, write in cosplay.hcl:\n\n  image = %q\n", o.Tag, id, o.Tag)
	return nil
}

// buildImage builds the image, with progress on standard error, and returns its ID.
func (inv *invocation) buildImage(ctx context.Context, o image.BuildOptions) (string, error) {
	engine, err := docker.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = engine.Close() }()
	if err := image.Build(ctx, engine.Client(), o, func(line string) { fmt.Fprintln(inv.Err, line) }); err != nil {
		return "", err
	}
	tags, err := image.Tags(ctx, engine.Client())
	if err != nil {
		return "", err
	}
	id, ok := tags[o.Tag]
	if !ok {
		return "", errors.New(o.Tag + " was built, but is missing already; possible cause: docker rmi")
	}
	return id, nil
}
