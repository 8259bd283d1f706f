package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cosplay/internal/render"
)

// exitCodes begins the line of a help text that tells them. Commands with no
// others than fine and error have no such line of their own.
const exitCodes = "Exit codes:"

// helpful gives all commands a help text in the width of the screen, with the
// exit codes.
func (inv *invocation) helpful(root *cobra.Command) {
	style := inv.style(inv.Out)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", style.Width)))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		render.Prose(inv.Out, style, about(cmd))
		fmt.Fprintln(inv.Out)
		_ = cmd.Usage()
	})
}

// about is what a command does, and how it ends.
func about(cmd *cobra.Command) string {
	text := cmp.Or(cmd.Long, cmd.Short+".")
	if !cmd.HasSubCommands() && !strings.Contains(text, exitCodes) {
		text += "\n\n" + exitCodes + " 0 fine; 1 error."
	}
	return text
}
