package resource

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func TestAddressThereAndBack(t *testing.T) {
	for text, a := range map[string]Address{
		"session.worker":           One("worker"),
		"session.worker[3]":        Nth("worker", 3),
		`session.worker["a b\"c"]`: Each("worker", `a b"c`),
		"session.lab-2_x":          One("lab-2_x"),
	} {
		if a.String() != text {
			t.Errorf("%+v is written %s, want %s", a, a, text)
		}
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Address
		if err := json.Unmarshal(data, &back); err != nil || back != a {
			t.Errorf("%s comes back as %+v, %v", data, back, err)
		}
	}
	for _, wrong := range []string{"", "worker", "session.", "session.worker[", "session.worker[-1]", "session.worker[a]", "session.worker[99999999999999999999]", "gpu.0", "session.3"} {
		if a, err := ParseAddress(wrong); err == nil {
			t.Errorf("%q was read as %+v", wrong, a)
		}
	}
}

func TestAddressesAreOrderedByNumber(t *testing.T) {
	all := []Address{Nth("w", 10), Nth("w", 2), One("v"), Each("w", "b"), Each("w", "a"), One("w")}
	slices.SortFunc(all, Address.Compare)
	want := []Address{One("v"), One("w"), Nth("w", 2), Nth("w", 10), Each("w", "a"), Each("w", "b")}
	if !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
}

func TestMatch(t *testing.T) {
	known := []Address{Nth("worker", 3), Nth("worker", 4), One("big")}
	for _, typed := range []string{"worker-3", "worker[3]", "session.worker[3]"} {
		if a, err := Match(typed, known); err != nil || a != known[0] {
			t.Errorf("%s is %v, %v", typed, a, err)
		}
	}
	for _, wrong := range []string{"worker", "worker-5", "", "Big"} {
		if a, err := Match(wrong, known); err == nil {
			t.Errorf("%q was taken for %v", wrong, a)
		}
	}
	if a, err := Match("", known[2:]); err != nil || a != known[2] {
		t.Errorf("a single session needs no name: %v, %v", a, err)
	}
	if _, err := Match("big", nil); err == nil {
		t.Error("found one among none")
	}
}

func TestSessionID(t *testing.T) {
	for a, want := range map[Address]string{Nth("worker", 3): "worker-3", One("big"): "big", Each("w", "a/b c"): "w-a-b-c"} {
		if id := SessionID(a); id != want {
			t.Errorf("%v: %q, want %q", a, id, want)
		}
	}
}

// TestHashStays: with another hash of the same session, an update of cosplay would replace every container.
func TestHashStays(t *testing.T) {
	whole := Session{
		Target: Target{Key: "rtx-2060", Name: "NVIDIA GeForce RTX 2060", Architecture: "turing", ComputeCapability: "7.5", SMs: 30, BoostMHz: 1680,
			MemoryMiB: 6144, BusBits: 192, BandwidthGBs: 336, L2MiB: 3, PowerW: 160, PCIeGeneration: 3, FP32TFLOPS: 6.5, TensorFP16TFLOPS: 51.6, TensorTypes: []string{"fp16"}},
		Slice:   Slice{Host: "lab", GPU: "GPU-0", Profile: "1g.18gb", Start: 4, Size: 1},
		Runtime: "docker", Program: Program{Command: []string{"true"}, Workspace: "/work", Env: map[string]string{"A": "1"}},
		Spec: ContainerSpec{Image: "debian:12", Volumes: []Volume{{Source: "data", Target: "/data"}}, Restart: "unless-stopped", User: User{Name: "jane", UID: 1234, GID: 1235, Group: "people"},
			SSH: SSH{Enabled: true, Bind: "127.0.0.1", AuthorizedKeys: []string{"ssh-ed25519 AAAA"}}, Limits: Limits{CPUs: 4, MemoryMiB: 1024}},
		Sealed: map[string]string{"TOKEN": "x"},
	}
	for hash, s := range map[string]Session{"e89e332a6719352dc3d0b27bed6c2cd4": whole, "38c76b05eee53213a84bc9174fc3ff5c": {Runtime: "process"}} {
		if got := s.Hash("key"); got != hash || !s.HasHash("key", hash) {
			t.Errorf("a %s session hashes as %s, not as ever: %s", s.Runtime, got, hash)
		}
	}
	if older := "3e212f341ddd74f095540ddeee61cd5d"; !whole.HasHash("key", older) || whole.HasHash("another", older) {
		t.Error("the hash of an older cosplay, which includes the limits, is not accepted with its key alone")
	}
}

// TestHash: the content of a session counts, and what may change while it runs does not.
func TestHash(t *testing.T) {
	s := Session{Target: Target{Key: "rtx-2060", MemoryMiB: 6144}, Slice: Slice{GPU: "GPU-0", Profile: "1g.18gb"}, Program: Program{Env: map[string]string{"A": "1", "B": "2"}},
		Spec: ContainerSpec{Image: "debian:12", SSH: SSH{Enabled: true}}}
	same := s
	same.Fit.ClockMHz, same.Request.Fit.Tolerance = 900, 0.3
	same.Target.Aliases, same.Target.Source, same.Target.Year = []string{"2060-6gb"}, "https://example.org/2060", 2019
	same.Spec = ContainerSpec{Image: "debian:12", Pull: PullAlways, SSH: SSH{Enabled: true, Kept: 32801},
		Limits: Limits{CPUs: 4, MemoryMiB: 1024, PIDs: 1}, Restart: "no"}
	same.Env = map[string]string{"B": "2", "A": "1"}
	if s.Hash("key") != same.Hash("key") {
		t.Error("a fit, where figures are from, how an image is pulled, the chosen port, or what an engine updates in place changes the hash")
	}
	for name, change := range map[string]func(*Session){
		"target":     func(s *Session) { s.Target.MemoryMiB = 12288 },
		"slice":      func(s *Session) { s.Slice.Start = 1 },
		"command":    func(s *Session) { s.Command = []string{"true"} },
		"workspace":  func(s *Session) { s.Workspace = "/elsewhere" },
		"env":        func(s *Session) { s.Env = map[string]string{"A": "2"} },
		"strict":     func(s *Session) { s.Strict = true },
		"capability": func(s *Session) { s.Capability = CapabilityReal },
		"image":      func(s *Session) { s.Spec.Image = "debian:13" },
		"user":       func(s *Session) { s.Spec.User.UID = 1234 },
		"group":      func(s *Session) { s.Spec.User.Group = "lab" },
		"keys":       func(s *Session) { s.Spec.SSH.AuthorizedKeys = []string{"ssh-ed25519 AAAA"} },
		"port":       func(s *Session) { s.Spec.SSH.Port = 22222 },
		"shm_size":   func(s *Session) { s.Spec.Limits.ShmMiB = 1 },
		"sudo":       func(s *Session) { s.Spec.Sudo = true },
		"volumes":    func(s *Session) { s.Spec.Volumes = []Volume{{Source: "data", Target: "/data"}} },
	} {
		other, spec := s, s.Spec
		other.Spec = spec
		change(&other)
		if other.Hash("key") == s.Hash("key") {
			t.Errorf("%s does not change the hash", name)
		}
	}
	if s.Hash("key") == s.Hash("another") {
		t.Error("the key does not count")
	}
}

func TestRefutesLock(t *testing.T) {
	g := GPU{Model: Model{ClocksMHz: []int{345, 1575, 1980}}}
	for _, test := range []struct {
		lock, now int
		held      bool
		want      bool
	}{
		{1575, 1575, false, false},
		{1575, 1980, false, true},
		{1575, 1980, true, true},
		{1575, 345, true, false}, // idle
		{1575, 345, false, true},
		{0, 1980, false, false},
		{0, 1575, false, true}, // locked by another process
		{0, 345, true, false},
	} {
		g.SMClockMHz, g.LowClockReason = test.now, test.held
		if got := g.RefutesLock(test.lock); got != test.want {
			t.Errorf("lock %d, clock %d, held %v: %v", test.lock, test.now, test.held, got)
		}
	}
}

func TestFitError(t *testing.T) {
	f := Fit{Got: Envelope{FP32TFLOPS: 5, BandwidthGBs: 400}, Want: Envelope{FP32TFLOPS: 10, BandwidthGBs: 200}}
	for prefer, want := range map[Preference]float64{PreferFP32: math.Ln2, PreferBandwidth: math.Ln2, PreferBalanced: math.Ln2} {
		if got := f.Error(prefer); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v", prefer, got)
		}
	}
	if f.TensorRatio() != 0 {
		t.Error("a target without tensor cores has no tensor ratio")
	}
}

func TestRequestEqual(t *testing.T) {
	a, b := 0.5, 0.5
	r := Request{Host: "lab", Target: "rtx-2060", Fit: FitOptions{MaxError: &a}}
	same := Request{Host: "lab", Target: "rtx-2060", Fit: FitOptions{MaxError: &b}}
	if !r.Equal(same) {
		t.Error("equal by value, not by pointer")
	}
	b = 0.4
	if r.Equal(same) || r.Equal(Request{Host: "lab", Target: "rtx-2060"}) {
		t.Error("another max_error is another request")
	}
}

func TestOverlaps(t *testing.T) {
	at := func(gpu string, start, size int) Slice {
		return Slice{GPU: gpu, Profile: "p", Start: start, Size: size}
	}
	whole := Slice{GPU: "a"}
	for _, test := range []struct {
		x, y Slice
		want bool
	}{
		{at("a", 0, 4), at("a", 4, 4), false},
		{at("a", 0, 4), at("a", 3, 1), true},
		{at("a", 0, 4), at("b", 0, 4), false},
		{whole, at("a", 6, 1), true},
	} {
		if test.x.Overlaps(test.y) != test.want || test.y.Overlaps(test.x) != test.want {
			t.Errorf("%v and %v: want %v", test.x, test.y, test.want)
		}
	}
}

// TestForgotten: what a state gives up it remembers by name, until it has it again.
func TestForgotten(t *testing.T) {
	container := Body{ID: "/p/.cosplay/a", Session: "a", Runtime: "process", Serial: 4}
	s := PriorSession{Session: Session{Address: One("a"), ID: "a"}, Handle: &Handle{UUID: "MIG-1"}, Body: &container}
	before := Prior{GPUs: []PriorGPU{{Host: "lab", UUID: "GPU-1"}}, Sessions: []PriorSession{s}, Missing: []Address{One("b")}}
	after := before.Forget(s.Address).Forget(One("b")).ForgetGPUs(map[GPUKey]bool{{"lab", "GPU-1"}: true})
	if len(after.Sessions)+len(after.GPUs)+len(after.Missing) != 0 || len(before.Sessions) != 1 || len(before.Missing) != 1 {
		t.Errorf("%+v, before %+v", after, before)
	}
	moved, later := container, container
	moved.ID, later.Serial = "/elsewhere/a", 5
	if !after.HasForgotten("MIG-1") || !after.HasForgotten("GPU-1") || !after.HasForgottenBody(moved) || after.HasForgotten("MIG-2") || after.HasForgottenBody(later) {
		t.Errorf("%q", after.Forgotten)
	}
	after.Sessions = before.Sessions
	if again := after.Remembering(); again.HasForgotten("MIG-1") || again.HasForgottenBody(container) || !again.HasForgotten("GPU-1") {
		t.Errorf("%q", again.Forgotten)
	}
}

// TestFound: GPUs and pages are found in lists of any order, and only those that are there.
func TestFound(t *testing.T) {
	for _, order := range [][]string{{}, {"GPU-b"}, {"GPU-b", "GPU-d", "GPU-f"}, {"GPU-f", "GPU-b", "GPU-d"}} {
		p, host := Prior{}, Host{Name: "lab"}
		for _, uuid := range order {
			p.GPUs = append(p.GPUs, PriorGPU{Host: "lab", UUID: uuid})
			host.Ledger = append(host.Ledger, Page{UUID: uuid})
		}
		for _, uuid := range []string{"GPU-a", "GPU-b", "GPU-c", "GPU-d", "GPU-e", "GPU-f", "GPU-g"} {
			there := slices.Contains(order, uuid)
			if g, found := p.GPU("lab", uuid); found != there || found && g.UUID != uuid {
				t.Errorf("%s in %q: %+v, %t", uuid, order, g, found)
			}
			if _, found := p.GPU("other", uuid); found {
				t.Errorf("%s in %q is found on another host", uuid, order)
			}
			if page, found := (Live{Hosts: []Host{host}}).Page("lab", uuid); found != there || found && page.UUID != uuid {
				t.Errorf("the page %s in %q: %+v, %t", uuid, order, page, found)
			}
		}
	}
}

func TestWithout(t *testing.T) {
	both := Prior{Sessions: []PriorSession{{Session: Session{Address: One("a")}}, {Session: Session{Address: One("b")}}}}
	for _, test := range []struct {
		dropped map[Address]bool
		left    int
	}{{nil, 2}, {map[Address]bool{One("a"): true}, 1}, {map[Address]bool{One("a"): true, One("b"): true}, 0}} {
		if left := both.Without(test.dropped); len(left.Sessions) != test.left || len(left.Sessions) == 1 && left.Sessions[0].Address != One("b") {
			t.Errorf("without %v: %+v", test.dropped, left.Sessions)
		}
		if both.Sessions[0].Address != One("a") || both.Sessions[1].Address != One("b") {
			t.Fatalf("without %v: the prior was changed", test.dropped)
		}
	}
}
