package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"cosplay/driver"
	"cosplay/internal/public"
	"cosplay/internal/render"
)

// release is the version of the next release. The Makefile reads it from this line.
const release = "0.1.0"

// Version is the version of this build. For a release the linker sets it.
var Version = release + "-dev"

func versionCommand(inv *invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, and what this binary lacks",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			view := public.Version{Version: Version, Go: runtime.Version(), Lacks: driver.Missing()}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						view.Revision = s.Value
					}
				}
			}
			return inv.print(render.VersionView{Version: view})
		},
	}
}
