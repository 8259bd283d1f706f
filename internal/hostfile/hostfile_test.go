package hostfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cosplay/catalog"
	"cosplay/internal/checksum"
	"cosplay/internal/resource"
)

// rack has two GPUs, of which one is in MIG mode with slices and processes, and one more that does not answer.
func rack(t testing.TB) resource.Host {
	t.Helper()
	a100, err := catalog.HostModel("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	slice := func(profile string, start, size, gi, ci, computeStart int) resource.LiveSlice {
		return resource.LiveSlice{Slice: resource.Slice{GPU: "GPU-1", Profile: profile, Start: start, Size: size, ComputeStart: computeStart},
			Handle: resource.Handle{GPUInstance: gi, ComputeInstance: ci, UUID: fmt.Sprintf("MIG-%d-%d", gi, ci)}}
	}
	sliced := resource.GPU{Index: 0, UUID: "GPU-1", PCI: "00000000:19:00.0", Model: a100, MIGCapable: true, MIG: true, MIGPending: true, Persistence: true, PowerMW: 300_000,
		SMClockMHz: 1200, Slices: []resource.LiveSlice{slice("1c.2g.20gb", 0, 2, 3, 0, 0), slice("1c.2g.20gb", 0, 2, 3, 1, 1), slice("3g.40gb", 4, 4, 1, 0, 0)},
		Processes: []resource.Process{{PID: 4711, MemoryMiB: 1024, GPUInstance: new(3), ComputeInstance: new(1)}}}
	whole := resource.GPU{Index: 2, UUID: "GPU-2", PCI: "00000000:3B:00.0", Model: a100, MIGCapable: true, PowerMW: 400_000, SMClockMHz: 210, LowClockReason: true,
		ComputeMode: resource.ExclusiveProcess, Processes: []resource.Process{{PID: 5, MemoryMiB: 10}},
		Degraded: []resource.Degradation{{Feature: resource.ReadingTemperature, Call: "nvmlDeviceGetTemperature", Code: 3, Message: "Not Supported"}}}
	return resource.Host{Driver: "570.86.15", GPUs: []resource.GPU{sliced, whole},
		Unusable: []resource.Unusable{{Index: 1, UUID: "GPU-3", Call: "nvmlDeviceGetName", Code: 15, Message: "GPU is lost"}}}
}

func encode(t testing.TB, h resource.Host) string {
	t.Helper()
	data, err := Encode(h, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRoundTrip(t *testing.T) {
	want := rack(t)
	got, err := Decode([]byte(encode(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(resource.Host{})); d != "" {
		t.Error(d)
	}
}

// TestNoSecrets: what identifies users, projects and programs is not exported.
func TestNoSecrets(t *testing.T) {
	h := rack(t)
	h.Name, h.Library, h.BootID = "secret-name", "/secret/lib", "secret-boot"
	h.Ledger = []resource.Page{{UUID: "GPU-1", Holders: []resource.Holder{{Lineage: "secret-lineage", User: "secret-user", State: "/secret"}}}}
	h.Bodies = []resource.Body{{ID: "secret-body", Session: "secret-session"}}
	h.Queue = []resource.Waiting{{User: "secret-user"}}
	g := &h.GPUs[0]
	g.Host, g.Processes[0].Name, g.Processes[0].Session = "secret-name", "secret-program", "secret-session"
	for i := range g.Slices {
		g.Slices[i].Host, g.Slices[i].Boot = "secret-name", "secret-boot"
	}
	g.Degraded = []resource.Degradation{{Feature: resource.FeatureClock, Call: "nvmlDeviceSetGpuLockedClocks", Code: 13, Message: "the library /secret/lib has no such function"}}
	if text := encode(t, h); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// sealed is the text with a checksum that fits.
func sealed(text string) string {
	i := strings.Index(text, `"sha256:`) + 1
	old := text[i : i+len("sha256:")+64]
	return strings.Replace(text, old, checksum.Of([]byte(text), old), 1)
}

// TestDamage: each kind of damage has its own message.
func TestDamage(t *testing.T) {
	good := encode(t, rack(t))
	replaced := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %s to damage", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	damage := func(old, new string) string { return sealed(replaced(old, new)) }
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "is damaged: it is empty"},
		"blank":                   {" \n", "is damaged: it is empty"},
		"truncated":               {good[:len(good)/2], fmt.Sprintf("is damaged: it is truncated after %d bytes", len(good)/2)},
		"not JSON":                {replaced(`"driver": `, `"driver" `), "is damaged: line 6 is not JSON: invalid character"},
		"a list":                  {"[]", "is not an exported host"},
		"a state":                 {`{"format_version": 2, "cosplay_version": "1", "lineage": "a"}`, "is not an exported host. Fix: name a file that cosplay host export has written"},
		"another kind":            {damage(`"kind": "host"`, `"kind": "fleet"`), "is not an exported host"},
		"a figure changed":        {replaced(`"power_mw": 300000`, `"power_mw": 300001`), "its checksum does not fit"},
		"no checksum":             {replaced(`"checksum"`, `"chocksum"`), "its checksum does not fit"},
		"more behind":             {good + "{}", "follows the end of the export"},
		"another type":            {damage(`"power_mw": 300000`, `"power_mw": "300 W"`), "power_mw cannot be a string"},
		"newer":                   {damage(`"format_version": 1`, `"format_version": 2`), "has format version 2, which a newer cosplay (1.2.3) wrote; this one reads up to 1. Fix: install that cosplay here"},
		"newer and damaged":       {replaced(`"format_version": 1`, `"format_version": 2`), "its checksum does not fit"},
		"no version":              {damage(`"format_version": 1`, `"format_version": 0`), "it has no format_version"},
		"negative":                {damage(`"power_mw": 300000`, `"power_mw": -1`), "GPU 0: a number is out of range"},
		"huge":                    {damage(`"sms": 108`, `"sms": 99999999999`), "GPU 0: a number is out of range"},
		"a clock":                 {damage(`"sm_clock_mhz": 1200`, `"sm_clock_mhz": 70000`), "GPU 0: no GPU has an SM clock of 70000 MHz"},
		"a compute mode":          {damage(`"compute_mode": "default"`, `"compute_mode": "shared"`), "the compute mode is unknown"},
		"no uuid":                 {damage(`"uuid": "GPU-2"`, `"uuid": ""`), "GPU 2: it has no uuid"},
		"a uuid twice":            {damage(`"uuid": "GPU-2"`, `"uuid": "GPU-1"`), "GPU-1 is there twice"},
		"an index twice":          {damage(`"index": 2`, `"index": 0`), "indexes 0 to 2"},
		"an index too many":       {damage(`"index": 2`, `"index": 7`), "indexes 0 to 2"},
		"a slice without MIG":     {damage(`"mig": true`, `"mig": false`), "slices without MIG mode"},
		"an unknown profile":      {damage(`"profile": "3g.40gb"`, `"profile": "3g.41gb"`), "no place for a slice 3g.41gb at slot 4"},
		"a slice at a wrong slot": {damage("\"start\": 4,\n          \"size\": 4", "\"start\": 2,\n          \"size\": 4"), "no place for a slice 3g.40gb at slot 2"},
		"slices over slices":      {damage("\"start\": 4,\n          \"size\": 4", "\"start\": 0,\n          \"size\": 4"), "cannot exist at the same time"},
		"a slice twice":           {damage(`"compute_start": 1`, `"compute_start": 0`), "cannot exist at the same time"},
		"a compute slice":         {damage(`"compute_start": 1`, `"compute_start": 2`), "no compute slice 2"},
		"a name twice":            {damage(`"uuid": "MIG-1-0"`, `"uuid": "MIG-3-0"`), "cannot exist at the same time"},
		"a process in nothing":    {damage("\"memory_mib\": 1024,\n          \"gpu_instance\": 3", "\"memory_mib\": 1024,\n          \"gpu_instance\": 5"), "process 4711 has a number that is out of range, or is in no slice"},
		"no process":              {damage(`"pid": 4711`, `"pid": 0`), "process 0 has a number"},
		"a profile":               {damage(`"compute_slices": 7,`+"\n        \"profiles\"", `"compute_slices": 7, "x": 1,`+"\n        \"profiles\""), ""},
		"a profile's slots":       {damage("\"memory_slices\": 1,", "\"memory_slices\": 0,"), `profile "1g.10gb" has a number that is out of range`},
		"clocks":                  {damage("\"clocks_mhz\": [\n          210", "\"clocks_mhz\": [\n          2100"), "clocks_mhz do not ascend"},
		"an answer":               {damage(`"call": "nvmlDeviceGetTemperature"`, `"call": ""`), "the failed call is missing"},
		"an unusable GPU":         {damage(`"call": "nvmlDeviceGetName"`, `"call": ""`), "GPU 1 does not answer, and the failed call is missing"},
		"no GPU":                  {sealed(`{"format_version": 1, "kind": "host", "checksum": "sha256:` + strings.Repeat("0", 64) + `", "gpus": []}`), "it has no GPU"},
	} {
		h, err := Decode([]byte(c.text))
		switch {
		case c.want == "": // a field that this cosplay does not know
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Fix: "):
			t.Errorf("%s: the error is %v, not %q with a fix", name, err, c.want)
		case len(h.GPUs) > 0:
			t.Errorf("%s: there is a host beside the error", name)
		}
	}
}

// TestEveryByteCounts: no byte can change, and no part of the file can be missing, without an error.
func TestEveryByteCounts(t *testing.T) {
	good := []byte(encode(t, rack(t)))
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1
		if _, err := Decode(bad); err == nil {
			t.Fatalf("%q for %q at byte %d is no error", bad[i], good[i], i)
		}
		if _, err := Decode(good[:i]); err == nil && !bytes.Equal(bytes.TrimSpace(good[i:]), nil) {
			t.Fatalf("the first %d bytes are no error", i)
		}
	}
}

// FuzzDecode: whatever a file contains, Decode returns an error or a host that Encode writes and Decode reads again.
func FuzzDecode(f *testing.F) {
	good := encode(f, rack(f))
	f.Add([]byte(good))
	f.Add([]byte(good[:len(good)/3]))
	f.Add([]byte(strings.Replace(good, `"start": 4`, `"start": 2`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if i := bytes.Index(data, []byte(`"sha256:`)); i >= 0 && len(data) > i+72 {
			data = []byte(sealed(string(data))) // otherwise nothing behind the checksum would be reached
		}
		h, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode([]byte(encode(t, h)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(h, again, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(resource.Host{})); d != "" {
			t.Error(d)
		}
	})
}
