package disguise_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cosplay/driver"
	"cosplay/internal/need"
)

// readOnly are the forms of nvidia-smi's output.
var readOnly = []string{
	"", "-L", "-q", "-q -x", "-q -d MEMORY,POWER,CLOCK,ECC,COMPUTE,PIDS,SUPPORTED_CLOCKS,ROW_REMAPPER", "-q -i 0",
	"--query-gpu=name,memory.total,power.max_limit --format=csv,noheader",
	"--query-gpu=gpu_name,gpu_uuid,mig.mode.current,memory.used,memory.free,clocks.max.sm,pcie.link.gen.max,ecc.mode.current --format=csv",
	"--query-compute-apps=gpu_name,gpu_uuid,pid,used_memory --format=csv",
	"--query-supported-clocks=gpu_name,mem,gr --format=csv",
	"nvlink -s", "mig -lgip", "mig -lgi", "mig -lci",
}

// settings are commands that change the GPU; their messages show the card as well.
var settings = []string{"-pl 120", "-i 0 -mig 0", "-i 0 -lgc 900", "-i 0 -pm 1"}

// ownWords are MIG terms that nvidia-smi prints for any card.
var ownWords = strings.NewReplacer(
	"|               MIG M. |", "",
	"    MIG Mode\n        Current                           : N/A\n        Pending                           : N/A\n", "",
	"<mig_mode>\n\t\t\t<current_mig>N/A</current_mig>\n\t\t\t<pending_mig>N/A</pending_mig>\n\t\t</mig_mode>", "",
	"<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>", "",
	"mig.mode.current", "", // a column that was asked for
	"No MIG-enabled devices found.", "",
	"Unable to disable MIG Mode for GPU", "",
)

var hidden = regexp.MustCompile(`(?i).*(mig|h200|hopper|a100|l40s).*`)

// NVIDIA's own nvidia-smi sees one card, the target, and no sign of the physical GPU.
func TestJudgeSeesTheTarget(t *testing.T) {
	path, ok := need.Judge(t)
	if !ok {
		return
	}
	m := newMachine(t, "h200", "h200", "a100-sxm4-80gb", "l40s")
	first, instance := m.slice(t, 1, "1g.18gb", 0)
	second, _ := m.slice(t, 1, "1g.18gb", 3)
	m.set(t, 1, "process", fmt.Sprintf("4711:700:%d", instance))
	if out, _ := smi(t, path, m.dir, "-q", "-i", "1"); hidden.FindString(ownWords.Replace(out)) == "" {
		t.Error("without the facade nothing is reported either")
	}
	for name, slice := range map[string]string{
		"first": first, "second": second, "whole A100": m.gpu(t, 2).UUID, "whole L40S": m.gpu(t, 3).UUID,
	} {
		t.Run(name, func(t *testing.T) {
			dir := m.install(t, "rtx-2060", slice)
			for _, view := range slices.Concat(readOnly, settings) {
				out, _ := smi(t, path, lib(dir), strings.Fields(view)...)
				if found := hidden.FindString(ownWords.Replace(out)); found != "" {
					t.Errorf("nvidia-smi %s reports: %s", view, found)
				}
			}
			uuid := "GPU-" + slice[4:]
			for _, says := range []struct{ view, words string }{
				{readOnly[1], "GPU 0: NVIDIA GeForce RTX 2060 (UUID: " + uuid + ")\n"},
				{readOnly[6], "NVIDIA GeForce RTX 2060, 6144 MiB, 160.00 W\n"},
			} {
				if out, code := smi(t, path, lib(dir), strings.Fields(says.view)...); out != says.words || code != 0 {
					t.Errorf("nvidia-smi %s says %q, rc %d; want %q", says.view, out, code, says.words)
				}
			}
		})
	}
	says := func(dir, view string, code int, all ...string) {
		t.Helper()
		out, got := smi(t, path, lib(dir), strings.Fields(view)...)
		if got != code {
			t.Errorf("nvidia-smi %s ended with %d, want %d:\n%s", view, got, code, out)
		}
		for _, words := range all {
			if !strings.Contains(out, words) {
				t.Errorf("nvidia-smi %s does not say %q:\n%s", view, words, out)
			}
		}
	}
	dir := m.install(t, "rtx-2060", first)
	says(dir, "", 0, "|   0  NVIDIA GeForce RTX 2060        Off |", "W / 160W |    700MiB /  6144MiB |")
	says(dir, "-q", 0, "Attached GPUs                             : 1\n", "Product Brand                         : GeForce",
		"Product Architecture                  : Turing", "Total                             : 6144 MiB",
		"Used                              : 700 MiB", "Free                              : 5444 MiB",
		"Min Power Limit                   : 80.00 W", "SM                                : 1680 MHz",
		"Memory                            : 7000 MHz", "GPU Current Temp                  : 34 C")
	says(dir, "-q -x", 0, "<attached_gpus>1</attached_gpus>", "<product_name>NVIDIA GeForce RTX 2060</product_name>",
		"<total>6144 MiB</total>", "<max_power_limit>160.00 W</max_power_limit>")
	says(dir, "-pl 120", 4, "Insufficient Permissions")
	says(dir, "-i 1 -q", 6, "No devices were found")
	says(dir, "-i "+shown(first)+" -q", 0, "NVIDIA GeForce RTX 2060")
}

var now = regexp.MustCompile(`(?m)^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4} *$|(Timestamp +: |<timestamp>).*`)

// Without figures the facade changes nothing: nvidia-smi's output equals that on the driver's library, byte for byte.
func TestPassThrough(t *testing.T) {
	path, ok := need.Judge(t)
	if !ok {
		return
	}
	m := newMachine(t, "h200", "a100-sxm4-80gb")
	m.set(t, 1, "process", "4711:1000")
	facade := t.TempDir()
	check(t, writeFacade(filepath.Join(facade, driver.NVML), driver.NVML, m.library(), filepath.Join(facade, "figures")))
	transcript := func(library, command string) string {
		out, code := smi(t, path, library, strings.Fields(command)...)
		return fmt.Sprintf("%s\nrc %d", now.ReplaceAllString(out, "now"), code)
	}
	for _, change := range []struct{ command, says string }{
		{"-pm 1", "Enabled persistence mode for GPU 00000000:3B:00.0"},
		{"-i 0 -mig 1", "Enabled MIG Mode for GPU 00000000:19:00.0"},
		{"mig -i 0 -cgi 9,19 -C", "created compute instance"},
		{"-i 0 -pl 450", "was set to 450.00 W from 700.00 W"},
		{"-i 1 -lgc 900", "GPU clocks set"},
		{"mig -i 0 -dci", "destroyed compute instance"},
		{"mig -i 0 -dgi", "destroyed GPU instance"},
	} {
		if out := transcript(facade, change.command); !strings.Contains(out, change.says) || !strings.HasSuffix(out, "rc 0") {
			t.Errorf("nvidia-smi %s through the facade: %s", change.command, out)
		}
		for _, view := range append([]string{"mig -lgipp", "mig -lcip", "-i 1 -q", "mig -i 1 -cgi 19"}, readOnly...) {
			if want, got := transcript(m.dir, view), transcript(facade, view); got != want {
				t.Errorf("after %s, nvidia-smi %s prints\n%s\nthrough the facade, and without it\n%s", change.command, view, got, want)
			}
		}
	}
}

// The same for go-nvml, including setters and errors. The first round leaves the host in the state that the others
// expect.
func TestPassThroughOfCalls(t *testing.T) {
	m := newMachine(t, "l40s", "h200")
	m.set(t, 0, "process", "4711:1000")
	facade := filepath.Join(t.TempDir(), driver.NVML)
	check(t, writeFacade(facade, driver.NVML, m.library(), "/nowhere/figures"))
	uuid := m.gpu(t, 1).UUID
	ask(t, m.library(), uuid)
	want := ask(t, m.library(), uuid)
	want.expect(t, answers{"name": "NVIDIA L40S", "count": 2, "power": 300000, "set power": 0})
	ask(t, facade, uuid).expect(t, want)
}
