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
		library := ""
		if len(os.Args) == 4 {
			library = os.Args[3]
		}
		if err := agent.Serve(os.Stdin, os.Stdout, library); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
