package gpucosplay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cosplay/catalog"
	"cosplay/internal/gpucosplay"
	"cosplay/internal/resource"
)

const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// entry is a session as gpu-cosplay writes it, with some of its lines replaced.
func entry(name string, replaced ...string) string {
	text := fmt.Sprintf(`%q: {
    "name": %[1]q,
    "card_key": "rtx_2060",
    "container_id": %[2]q,
    "container_name": %[1]q,
    "gpu_index": 0,
    "mig_profile_name": "1g.18gb",
    "mig_uuid": "MIG-32278407-1cb4-5210-b909-5d0d1b1cb2e7",
    "mig_gi_id": 13,
    "mig_ci_id": 0,
    "clock_mhz": 780,
    "power_limit_w": 200,
    "ssh_port": 38177,
    "vram_cap_gb": 6.0,
    "workspace_mount": "/home/ada/exp",
    "original_power_limit_w": 700,
    "original_mig_enabled": false,
    "original_persistence_mode": false,
    "image": "gpu-cosplay:latest",
    "ssh_available": true,
    "extra": {}
  }`, name, id)
	return strings.NewReplacer(replaced...).Replace(text)
}

func state(entries ...string) []byte { return []byte("{\n  " + strings.Join(entries, ",\n  ") + "\n}") }

func TestParse(t *testing.T) {
	whole := entry("trainer", `"1g.18gb"`, "null", `"MIG-32278407-1cb4-5210-b909-5d0d1b1cb2e7"`, "null", `"clock_mhz": 780`, `"clock_mhz": null`, `: 38177`, ": 0", `"gpu_index": 0`, `"gpu_index": 3`)
	all, err := gpucosplay.Parse(state(entry("cosplay-rtx-2060-9277"), whole))
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	s := all[0]
	if s.Name != "cosplay-rtx-2060-9277" || s.Card != "rtx_2060" || s.ContainerID != id || s.Profile != "1g.18gb" || s.SSHPort != 38177 || s.Workspace != "/home/ada/exp" || s.ClockMHz != 780 {
		t.Errorf("%+v", s)
	}
	if s = all[1]; s.GPU != 3 || s.Profile != "" || s.SliceUUID != "" || s.ClockMHz != 0 || s.SSHPort != 0 {
		t.Errorf("%+v", s)
	}
}

// An older gpu-cosplay did not record image, ssh_available and the persistence mode; a later one may record more.
func TestOtherVersions(t *testing.T) {
	older := entry("a1", `"original_persistence_mode": false,`, "", `"image": "gpu-cosplay:latest",`, "", `"ssh_available": true,`, "")
	newer := entry("b1", `"extra": {}`, `"extra": {"x": [1]}, "later": {"y": null}`)
	all, err := gpucosplay.Parse(state(older, newer))
	if err != nil || len(all) != 2 || all[0].Image != "" {
		t.Fatal(all, err)
	}
	if before := gpucosplay.Baselines(all[:1])[0]; before.Has(resource.PersistenceMode) || !before.Is(resource.MIGMode, resource.Off) || !before.Is(resource.PowerLimit, 700_000) {
		t.Error(before)
	}
}

// What a later session found was set by an earlier one.
func TestBaselines(t *testing.T) {
	second := entry("s2", `"original_mig_enabled": false`, `"original_mig_enabled": true`, `"original_persistence_mode": false`, `"original_persistence_mode": true`)
	onMIG := entry("s3", `"gpu_index": 0`, `"gpu_index": 1`, `"original_mig_enabled": false`, `"original_mig_enabled": true`, `"power_limit_w": 200`, `"power_limit_w": null`)
	whole := entry("s4", `"gpu_index": 0`, `"gpu_index": 2`, `"1g.18gb"`, "null", `"original_mig_enabled": false`, `"original_mig_enabled": true`)
	for _, order := range [][]string{{"s1", "s2"}, {"s1", "s0"}} {
		all, err := gpucosplay.Parse(state(entry(order[0]), strings.ReplaceAll(second, "s2", order[1]), onMIG, whole))
		if err != nil {
			t.Fatal(err)
		}
		b := gpucosplay.Baselines(all)
		want := resource.Settings{}.With(resource.MIGMode, resource.Off).With(resource.PersistenceMode, resource.Off).With(resource.PowerLimit, 700_000)
		if b[0] != want {
			t.Errorf("%v: %v", order, b[0])
		}
		if b[1].Has(resource.PowerLimit) || !b[1].Is(resource.MIGMode, resource.On) {
			t.Errorf("GPU 1: %v", b[1])
		}
		if b[2].Has(resource.MIGMode) {
			t.Errorf("GPU 2: %v", b[2])
		}
	}
}

func TestHostileStates(t *testing.T) {
	many := make([]string, 257)
	for i := range many {
		many[i] = entry(fmt.Sprintf("s%03d", i))
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":      {nil, "is not the JSON"},
		"a list":     {[]byte(`[]`), "is not the JSON"},
		"not UTF-8":  {[]byte("{\"\xff\": {}}"), "not UTF-8"},
		"large":      {[]byte(strings.Repeat(" ", gpucosplay.MaxBytes+1)), "exceeds 1024 KiB"},
		"many":       {state(many...), "has 257 sessions"},
		"null":       {[]byte(`{"ab": null}`), `gpu_index is "missing"`},
		"a number":   {[]byte(`{"ab": 3}`), `session "ab"`},
		"name":       {state(entry("ab", `"name": "ab"`, `"name": "cd"`)), `name is "cd", and not the key of its entry`},
		"newline":    {state(entry("a\nb")), "name of a container"},
		"option":     {state(entry("--rm")), "name of a container"},
		"id":         {state(entry("ab", id, "abc")), `container_id is "abc"`},
		"card":       {state(entry("ab", "rtx_2060", "RTX 2060")), `card_key is "RTX 2060"`},
		"gpu":        {state(entry("ab", `"gpu_index": 0`, `"gpu_index": -1`)), "number from 0 to 255"},
		"huge gpu":   {state(entry("ab", `"gpu_index": 0`, `"gpu_index": 99999999999999999999`)), "cannot unmarshal"},
		"fraction":   {state(entry("ab", `"gpu_index": 0`, `"gpu_index": 0.5`)), "cannot unmarshal"},
		"port":       {state(entry("ab", "38177", "70000")), "ssh_port"},
		"power":      {state(entry("ab", `"original_power_limit_w": 700`, `"original_power_limit_w": 0`)), "original_power_limit_w"},
		"slice":      {state(entry("ab", "MIG-32278407", "GPU-32278407")), "UUID of a MIG slice"},
		"profile":    {state(entry("ab", "1g.18gb", "1g 18gb")), "MIG profile"},
		"workspace":  {state(entry("ab", "/home/ada/exp", "exp")), "absolute path"},
		"long image": {state(entry("ab", "gpu-cosplay:latest", strings.Repeat("x", 5000))), "at most 4096 bytes"},
	} {
		all, err := gpucosplay.Parse(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		} else if len(all) != 0 {
			t.Errorf("%s: sessions beside the error: %v", name, all)
		} else if len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// Every card of gpu-cosplay's data is a target of the catalog with as much memory.
func TestCards(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "cards.txt"))
	if err != nil {
		t.Fatal(err)
	}
	cards := strings.Fields(string(text))
	if len(cards) != 90 {
		t.Fatalf("%d words", len(cards))
	}
	for i := 0; i < len(cards); i += 2 {
		target, err := catalog.Target(cards[i])
		if err != nil {
			t.Error(err)
			continue
		}
		var gb int
		if _, err := fmt.Sscan(cards[i+1], &gb); err != nil || target.MemoryMiB > gb*1024 || target.MemoryMiB < gb*900 {
			t.Errorf("%s has %d GB, and %s %d MiB (%v)", cards[i], gb, target.Key, target.MemoryMiB, err)
		}
	}
}

func TestAdapt(t *testing.T) {
	s := resource.Session{Program: resource.Program{Command: []string{"sleep", "infinity"}, Env: map[string]string{
		"HOST_USER": "ada", "HOST_UID": "1", "HOST_GID": "1", "GPU_COSPLAY_CARD": "rtx_2060", "GPU_COSPLAY_PUBKEY": "ssh-ed25519 AAAA ada\n", "SEED": "1", "HOST_NAME": "x"}}}
	s.Spec.Entrypoint = []string{"/opt/gpu-cosplay/entrypoint.sh"}
	s.Spec.Volumes = []resource.Volume{{Source: "/a", Target: "/data"}, {Source: "/b", Target: "/opt/gpu-cosplay/nvidia-smi", ReadOnly: true}}
	if key := gpucosplay.Adapt(&s); key != "ssh-ed25519 AAAA ada" {
		t.Errorf("key %q", key)
	}
	if len(s.Env) != 2 || s.Env["SEED"] != "1" || len(s.Spec.Volumes) != 1 || s.Spec.Volumes[0].Target != "/data" || s.Spec.Entrypoint != nil || s.Command != nil {
		t.Errorf("%+v", s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(state(entry("cosplay-rtx-2060-9277")))
	f.Add([]byte(`{"ab": {"name": "ab", "gpu_index": 1e3}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := gpucosplay.Parse(data)
		if err != nil {
			return
		}
		for _, s := range all {
			if strings.ContainsAny(s.Name+s.Container+s.Card, "\n \"$") || s.GPU < 0 || !strings.HasPrefix(s.Workspace, "/") {
				t.Errorf("%+v", s)
			}
		}
		for gpu, b := range gpucosplay.Baselines(all) {
			if mw, has := b.Get(resource.PowerLimit); has && mw <= 0 || gpu < 0 {
				t.Errorf("GPU %d: %v", gpu, b)
			}
		}
	})
}
