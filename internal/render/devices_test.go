package render

import (
	"bytes"
	"encoding/csv"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"cosplay/internal/resource"
)

// TestApptainer checks that a shell and Apptainer, whose flags are pflag's, read every variable and path as it is.
func TestApptainer(t *testing.T) {
	env := map[string]string{"A": `say "hi"`, "B": "it's", "C": "a,b", "D": "a=b,c=d", "E": `$HOME \n`, "F": "", "G": "two\nlines", "H": `"`, "I": "a b"}
	var lines bytes.Buffer
	DeviceLines["apptainer"](&lines, DevicesView{{Offer: resource.Offer{Env: env, Mounts: []resource.Mount{{Host: "/a, \"b\": c", Container: "/d"}}}}})
	words, err := exec.Command("bash", "-c", "printf '%s\\0' "+lines.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Bool("no-eval", false, "")
	got, mounts := flags.StringToString("env", nil, ""), flags.StringArray("mount", nil, "")
	if err := flags.Parse(strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")); err != nil {
		t.Fatalf("%v in %s", err, lines.String())
	}
	if d := cmp.Diff(env, *got); d != "" {
		t.Error(d)
	}
	mount, err := csv.NewReader(strings.NewReader(strings.Join(*mounts, "\n"))).Read()
	if want := []string{"type=bind", "src=/a, \"b\": c", "dst=/d", "ro"}; err != nil || !cmp.Equal(mount, want) {
		t.Errorf("%v: %q", err, mount)
	}
	if want := []string{"apptainer", "exec", "IMAGE", "COMMAND"}; !cmp.Equal(flags.Args(), want) {
		t.Errorf("%q", flags.Args())
	}
}
