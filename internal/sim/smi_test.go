package sim_test

import (
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"cosplay/driver"
	"cosplay/internal/need"
)

// smi runs nvidia-smi on the host, and returns its output and exit status.
func smi(t *testing.T, path string, args ...string) (string, int) {
	t.Helper()
	c := exec.Command(path, args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func TestJudgedByNvidiaSMI(t *testing.T) {
	path, ok := need.Judge(t)
	if !ok {
		return
	}
	create(t, h200, h200, l40s)
	before := state(t)
	steps := []struct {
		args string
		code int
		says []string
	}{
		{"-L", 0, []string{"GPU 0: NVIDIA H200 (UUID: GPU-", "GPU 2: NVIDIA L40S"}},
		{"", 0, []string{"Driver Version: 580.159.04", "CUDA Version: 13.0", "0MiB / 46068MiB", "No running processes found"}},
		{"-q -d SUPPORTED_CLOCKS -i 0", 0, []string{"Memory                            : 3125 MHz", "Graphics                      : 1980 MHz", "Graphics                      : 345 MHz"}},
		{"mig -lgip", 6, []string{"No MIG-enabled devices found"}},
		{"-pm 1", 0, []string{"Enabled persistence mode for GPU 00000000:19:00.0"}},
		{"-i 0 -mig 1", 0, []string{"Enabled MIG Mode for GPU 00000000:19:00.0"}},
		{"-i 2 -mig 1", 0, []string{"Unable to enable MIG Mode for GPU 00000000:4C:00.0: Not Supported"}},
		{"mig -lgip", 0, []string{"MIG 1g.18gb       19     7/7        16.00      No     16", "MIG 7g.141gb       0     1/1        139.75     No     132"}},
		{"mig -lgipp", 0, []string{"Profile ID 15 Placements: {0,2,4,6}:2", "Profile ID  0 Placement : {0}:8"}},
		{"mig -i 0 -cgi 9 -C", 0, []string{"created GPU instance ID  2 on GPU  0 using profile MIG 3g.71gb (ID  9)", "created compute instance ID  0"}},
		{"mig -i 0 -cgi 9:4 -C", 0, []string{"created GPU instance ID  1 on GPU  0"}},
		{"mig -i 0 -cgi 9 -C", 23, []string{"Insufficient Resources"}},
		{"mig -lgi", 0, []string{"MIG 3g.71gb          9        2          0:4", "MIG 3g.71gb          9        1          4:4"}},
		{"mig -lci", 0, []string{"2       MIG 3g.71gb          2         0          0:3"}},
		{"mig -lcip", 0, []string{"MIG 1c.3g.71gb       0      0/3           16", "MIG 3g.71gb          2*     0/1           60"}},
		{"-L", 0, []string{"MIG 3g.71gb     Device  1: (UUID: MIG-"}},
		{"", 0, []string{"MIG devices:", "|  0    2   0   1  |               0MiB / 71168MiB  | 60"}},
		{"mig -i 0 -dgi", 19, []string{"In use"}},
		{"mig -i 0 -dci", 0, []string{"Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  1"}},
		{"mig -i 0 -dgi", 0, []string{"Successfully destroyed GPU instance ID  2 from GPU  0"}},
		{"-i 0 -mig 0", 0, []string{"Disabled MIG Mode"}},
		{"-i 0 -pl 100", 2, []string{"between 200.00 W and 700.00 W"}},
		{"-i 0 -pl 450", 0, []string{"was set to 450.00 W from 700.00 W"}},
		{"-i 0 -lgc 1200", 0, []string{`GPU clocks set to "(gpuClkMin 1200, gpuClkMax 1200)"`}},
		{"-i 0 --query-gpu=name,memory.total,power.limit,clocks.sm,clocks.max.sm,mig.mode.current,compute_cap,persistence_mode --format=csv,noheader", 0,
			[]string{"NVIDIA H200, 143771 MiB, 450.00 W, 1200 MHz, 1980 MHz, Disabled, 9.0, Enabled"}},
		{"-q -i 0", 0, []string{"Product Architecture                  : Hopper", "Current Power Limit               : 450.00 W", "Idle                              : Active"}},
		{"-i 0 -rgc", 0, []string{"All done"}},
		{"-i 0 --query-gpu=clocks.sm --format=csv,noheader", 0, []string{"345 MHz"}},
		{"-i 0 -pl 700", 0, []string{"was set to 700.00 W from 450.00 W"}},
		{"-pm 0", 0, []string{"Disabled persistence mode"}},
	}
	for _, s := range steps {
		out, code := smi(t, path, strings.Fields(s.args)...)
		if code != s.code {
			t.Errorf("nvidia-smi %s ended with %d, want %d:\n%s", s.args, code, s.code, out)
		}
		for _, words := range s.says {
			if !strings.Contains(out, words) {
				t.Errorf("nvidia-smi %s does not say %q:\n%s", s.args, words, out)
			}
		}
	}
	sameState(t, before)
}

// nvidia-smi's XML is well-formed and equals the values from NVML.
func TestJudgeReadsXML(t *testing.T) {
	path, ok := need.Judge(t)
	if !ok {
		return
	}
	start(t, h200, a30)
	migOn(t, gpu(t, 1))
	slice(t, gpu(t, 1), a30, "2g.12gb", 2)
	out, code := smi(t, path, "-q", "-x")
	equal(t, "exit code", code, 0)
	var log struct {
		GPUs []struct {
			Name string `xml:"product_name"`
			UUID string `xml:"uuid"`
			MIG  string `xml:"mig_mode>current_mig"`
			Devs []struct {
				Index string `xml:"index"`
				GI    string `xml:"gpu_instance_id"`
				SMs   string `xml:"device_attributes>shared>multiprocessor_count"`
			} `xml:"mig_devices>mig_device"`
		} `xml:"gpu"`
	}
	decoder := xml.NewDecoder(strings.NewReader(out))
	decoder.Strict = true
	if err := decoder.Decode(&log); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	equal(t, "GPUs", len(log.GPUs), 2)
	for i, g := range log.GPUs {
		uuid, ret := gpu(t, i).GetUUID()
		want(t, ret, nvml.SUCCESS)
		equal(t, "UUID", g.UUID, uuid)
	}
	equal(t, "MIG", log.GPUs[1].MIG, "Enabled")
	if len(log.GPUs[1].Devs) != 1 {
		t.Fatalf("there are %d MIG devices in:\n%s", len(log.GPUs[1].Devs), out)
	}
	equal(t, "index", log.GPUs[1].Devs[0].Index, "0")
	equal(t, "GPU instance", log.GPUs[1].Devs[0].GI, "2")
	equal(t, "SMs", log.GPUs[1].Devs[0].SMs, "28")
}

var nvmlName = regexp.MustCompile(`(nvml[A-Z][A-Za-z0-9_]+)\x00`)

// TestJudgedByOtherVersions checks that each version of nvidia-smi finds every function that it looks up and reads
// the GPUs' identity, for which versions call different functions.
func TestJudgedByOtherVersions(t *testing.T) {
	path, ok := need.Judge(t)
	if !ok {
		return
	}
	others, err := filepath.Glob(filepath.Join(filepath.Dir(path), "smi/*/nvidia-smi"))
	if err != nil || len(others) == 0 {
		need.Lacking(t, "there are no other versions of nvidia-smi beside %s; scripts/install-nvidia-smi fetches them", path)
	}
	create(t, h200, h200)
	known := map[string]bool{}
	for _, name := range driver.Names() {
		known[name] = true
	}
	for _, other := range others {
		program, err := os.ReadFile(other)
		if err != nil {
			t.Fatal(err)
		}
		wanted := 0
		for _, name := range nvmlName.FindAllSubmatch(program, -1) {
			if wanted++; !known[string(name[1])] {
				t.Errorf("%s looks up %s, which the simulated driver does not export", other, name[1])
			}
		}
		if wanted < 200 {
			t.Errorf("%s looks up %d functions: its names are not found", other, wanted)
		}
		for _, s := range []struct{ args, says string }{
			{"-L", "GPU 1: NVIDIA H200 (UUID: GPU-"},
			{"", "|   0  NVIDIA H200                    Off |   00000000:19:00.0 Off |"},
			{"-q -i 1", "Bus                               : 0x3B"},
			{"-q -i 1", "Base Classcode                    : 0x3"},
			{"-q -i 1", "Device Id                         : 0x233510DE"},
			{"-q -i 1", "Bus Id                            : 00000000:3B:00.0"},
			{"--query-gpu=pci.bus_id,power.limit,clocks.max.sm --format=csv,noheader -i 0", "00000000:19:00.0, 700.00 W, 1980 MHz"},
		} {
			if out, code := smi(t, other, strings.Fields(s.args)...); code != 0 || !strings.Contains(out, s.says) {
				t.Errorf("%s %s ends with %d and does not say %q:\n%s", other, s.args, code, s.says, out)
			}
		}
	}
}
