package project

import (
	"fmt"
	"os"
	"testing"

	"cosplay/internal/agent"
)

// TestMain lets the test binary be the agent, as cosplay is its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		flags := map[string]string{}
		for i := 2; i+1 < len(os.Args); i += 2 {
			flags[os.Args[i]] = os.Args[i+1]
		}
		if err := agent.Serve(os.Stdin, os.Stdout, flags["--library"], flags["--ledger"]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
