package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"cosplay/internal/config"
)

func (inv *invocation) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON schema of the language, for editors",
		Long:  `Print a JSON schema (draft 2020-12) of configuration files: every block and attribute with its description, type, unit, default and example, and with what a change of it leads to. It holds for the JSON syntax, *.hcl.json, as it is; editors of the other syntax find all words in it.`,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			encoder := json.NewEncoder(inv.Out)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			return encoder.Encode(config.JSONSchema())
		},
	}
}
