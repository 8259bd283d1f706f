package state

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/checksum"
	"cosplay/internal/resource"
	"cosplay/internal/wiretest"
)

// TestDamage checks that each kind of damage has its own message, when reading and when writing, and that the file
// does not change.
func TestDamage(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	save(t, s, save(t, s, some())) // so that there is a backup
	good := read(t, s.Path)
	backup := read(t, s.BackupPath())
	resealed := func(old, new string) string { return reseal(strings.Replace(good, old, new, 1)) }
	faults := map[string]string{}
	for name, test := range map[string]struct {
		content string
		fault   Fault
		want    string
	}{
		"empty":               {"", Empty, "it is empty"},
		"blank":               {" \n", Empty, "it is empty"},
		"cut in half":         {good[:len(good)/2], Truncated, "truncated after"},
		"a bit turned":        {strings.Replace(good, `"lab"`, `"lac"`, 1), Altered, "checksum does not fit"},
		"a bit turned, newer": {strings.Replace(good, `"format_version": 4`, `"format_version": 5`, 1), Altered, "newer cosplay writes, but its checksum does not fit"},
		"no checksum":         {strings.Replace(good, `"checksum"`, `"chocksum"`, 1), Altered, "checksum is missing"},
		"zeros":               {strings.Repeat("\x00", 100), NotJSON, "not JSON: byte 1"},
		"a conflict of git":   {"<<<<<<< HEAD\n" + good, NotJSON, "not JSON: byte 1"},
		"a name twice":        {resealed(`"lineage"`, `"serial": 7, "lineage"`), NotJSON, "duplicate object member name"},
		"two in one":          {good + good, NotJSON, "after top-level value"},
		"another tool's":      {`{"version": 4, "terraform_version": "1.9"}`, NotAState, "not a state of cosplay"},
		"a list":              {`[1, 2]`, NotAState, "not a state of cosplay"},
		"newer":               {resealed(`"format_version": 4`, `"format_version": 99`), Newer, "newer cosplay"},
		"newer and odd":       {`{"format_version": 99, "serial": "a", "sessions": [{"address": 7}]}`, Newer, "newer cosplay"},
		"wrong type":          {`{"format_version": 1, "lineage": "a", "serial": "one"}`, Altered, "serial"},
		"no lineage":          {`{"format_version": 1}`, NoLineage, "no lineage"},
		"no lineage, now":     {resealed(`"lineage"`, `"lin"`), NoLineage, "no lineage"},
		"a nameless session":  {`{"format_version": 1, "lineage": "a", "sessions": [{"id": "a"}]}`, Altered, "session 1 in it has no address"},
		"an unlisted target":  {resealed(`"target": "rtx-2060"`, `"target": "rtx-2061"`), Altered, `no target "rtx-2061" in its list`},
		"an unlisted fit":     {resealed(`"fit": "GPU at`, `"fit": "CPU at`), Altered, `no fit "CPU at 0 MHz" in its list`},
		"a session twice":     {resealed(`session.worker[1]`, `session.worker[0]`), Altered, "session.worker[0] is twice"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, s.Path, []byte(test.content))
			_, err := s.Load()
			wantFault(t, err, test.fault)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			_, err = s.Save(resource.Prior{Lineage: "mine"})
			wantFault(t, err, test.fault)
			if read(t, s.Path) != test.content || read(t, s.BackupPath()) != backup {
				t.Error("a file was touched")
			}
			faults[test.want] = string(test.fault)
		})
	}
	if len(faults) < 10 {
		t.Errorf("only %d kinds of words", len(faults))
	}
}

// reseal writes the checksum of a file that was changed.
func reseal(content string) string {
	i := strings.Index(content, "sha256:")
	old := content[i : i+len("sha256:")+64]
	return strings.Replace(content, old, checksum.Of([]byte(content), old), 1)
}

// TestNextStep checks that only an intact backup is recommended.
func TestNextStep(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	write(t, s.Path, nil)
	for _, test := range []struct{ backup, want string }{
		{"", "no good backup"},
		{"rubbish", "no good backup"},
		{string(must(encode(resource.Prior{Lineage: "a", Serial: 41}, ""))), "serial 41, restore that: cp " + s.BackupPath() + " " + s.Path},
	} {
		if test.backup != "" {
			write(t, s.BackupPath(), []byte(test.backup))
		}
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// TestEveryBit inverts every bit of a small state and some of a larger one, and truncates them at every byte: none of
// the results may be read as a state.
func TestEveryBit(t *testing.T) {
	small := some()
	small.Lineage, small.Key, small.Serial, small.Sessions = "f00d", "5ec4e7", 9, nil
	larger := some()
	larger.Lineage, larger.Serial = "f00d", 9
	turned := 0
	for step, p := range map[int]resource.Prior{1: small, 97: larger} {
		data := must(encode(p, "1.2.3"))
		if back, refusal := decode(data); refusal != nil || cmp.Diff(p, back) != "" {
			t.Fatalf("the whole state: %v", refusal)
		}
		for bit := 0; bit < 8*len(data); bit += step {
			data[bit/8] ^= 1 << (bit % 8)
			if _, refusal := decode(data); refusal == nil {
				t.Fatalf("bit %d turned, and the state is read:\n%s", bit, data)
			}
			data[bit/8] ^= 1 << (bit % 8)
			turned++
		}
		for cut := 0; cut < len(data); cut += step {
			if _, refusal := decode(data[:cut]); refusal == nil {
				t.Fatalf("cut at byte %d, and the state is read", cut)
			}
		}
	}
	t.Logf("%d bits turned", turned)
}

// TestManyBits inverts several bits, and swaps, repeats and drops pieces at random places of a large state: the
// result is either the original state or refused.
func TestManyBits(t *testing.T) {
	p := resource.Prior{Lineage: "f00d", Serial: 9}
	for i := range 300 {
		p.Sessions = append(p.Sessions, resource.PriorSession{Session: resource.Session{Address: resource.Nth("w", i), ID: fmt.Sprint("w-", i)}})
	}
	whole := must(encode(p, "1.2.3"))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 300 {
		data := append([]byte(nil), whole...)
		at, other, n := random.IntN(len(data)-64), random.IntN(len(data)-64), 1+random.IntN(64)
		switch round % 4 {
		case 0:
			for range n {
				data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			}
		case 1:
			copy(data[at:at+n], whole[other:other+n])
		case 2:
			data = append(data[:at:at], whole[at+n:]...)
		case 3:
			data = append(data[:at:at], whole[max(0, at-n):]...)
		}
		back, refusal := decode(data)
		if same := string(data) == string(whole); refusal == nil && (!same || cmp.Diff(p, back) != "") {
			t.Fatalf("seed %d, round %d: another state is read", seed, round)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files again")

// TestFormats checks that each file in testdata is read without losing a value. A file in the current format is
// written unchanged; for an older one, the .now file has the result.
func TestFormats(t *testing.T) {
	files, err := filepath.Glob("testdata/version*.json")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[int]bool{}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			old := read(t, path)
			var h head
			if err := json.Unmarshal([]byte(old), &h); err != nil {
				t.Fatal(err)
			}
			versions[h.FormatVersion] = true
			p, refusal := decode([]byte(old))
			if refusal != nil {
				t.Fatal(refusal.What)
			}
			now, golden := string(must(encode(p, h.CosplayVersion))), path
			if h.FormatVersion < formatVersion {
				golden = strings.TrimSuffix(path, ".json") + ".now"
				if *update {
					write(t, golden, []byte(now))
				}
			}
			if d := cmp.Diff(read(t, golden), now); d != "" {
				t.Errorf("written (-%s +now):\n%s", filepath.Base(golden), d)
			}
		})
	}
	for v := 1; v <= formatVersion; v++ {
		if !versions[v] {
			t.Errorf("testdata has no file of format version %d", v)
		}
	}
}

// TestFields: the tags of resource.Prior are the format, so a test lists them.
func TestFields(t *testing.T) {
	wiretest.Pin(t, "testdata/fields.txt", *update, "A new field needs nothing else. A field that is removed, renamed or of another meaning needs a new formatVersion, a way to read the one before and a file of it.", file{})
}

// TestVersion1: saving keeps a file of an older version as the backup.
func TestVersion1(t *testing.T) {
	old := read(t, "testdata/version1.json")
	s := Store{Path: filepath.Join(t.TempDir(), FileName)}
	write(t, s.Path, []byte(old))
	p, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	saved := save(t, s, p)
	if read(t, s.BackupPath()) != old {
		t.Error("the backup is not the file of before")
	}
	back, err := s.Load()
	if err != nil || cmp.Diff(saved, back) != "" {
		t.Errorf("comes back as %+v, %v", back, err)
	}
}

// TestLists: each target and each fit is in the file once, also where two have the same name.
func TestLists(t *testing.T) {
	p := some()
	p.Lineage = "a"
	first := p.Sessions[0]
	for i, memory := range []int{6144, 6144, 12288, 6144, 12288} {
		s := first
		s.Address = resource.Address{Name: fmt.Sprint("z", i)}
		s.Target.MemoryMiB, s.Fit.Want.MemoryMiB = memory, memory
		p.Sessions = append(p.Sessions, s)
	}
	data := string(must(encode(p, "1")))
	if got := strings.Count(data, `"boost_mhz"`); got != 2 || strings.Count(data, `"target": "rtx-2060#2"`) != 2 {
		t.Errorf("the file has %d targets:\n%s", got, data)
	}
	if got := strings.Count(data, `"got":`); got != 3 || strings.Count(data, `"fit": "GPU at 0 MHz#2"`) != 3 {
		t.Errorf("the file has %d fits:\n%s", got, data)
	}
	back, refusal := decode([]byte(data))
	if refusal != nil {
		t.Fatal(refusal.What)
	}
	if d := cmp.Diff(p.Sessions, back.Sessions); d != "" {
		t.Errorf("written -, read +:\n%s", d)
	}
}

// FuzzDecode checks that no input causes a panic, and that a state that was read can be written and read again.
func FuzzDecode(f *testing.F) {
	f.Add(must(encode(resource.Prior{Lineage: "a", GPUs: some().GPUs[:1]}, "1")))
	f.Add([]byte(`{"format_version": 1, "lineage": "a", "boot_ids": {"lab": "b"}, "gpus": [{"host": "lab", "uuid": "GPU-0", "baseline": {"mig": true}}],
		"sessions": [{"address": "session.a[1]", "id": "a-1", "slice": {"start": 3}, "handle": {"uuid": "MIG-0"}, "container": {"id": "c"}}, {"address": "session.b[\"x\"]"}]}`))
	f.Add([]byte(`{"format_version": 1, "lineage": "a", "targets": {"x": {"sms": 3}}, "sessions": [{"address": "session.a", "target": "x"}, {"address": "session.b", "target": {"key": "x"}}]}`))
	f.Add([]byte(`{"format_version": 3, "checksum": "sha256:` + strings.Repeat("0", 64) + `", "lineage": "a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, refusal := decode(data)
		if refusal != nil {
			if refusal.What == "" || refusal.Fault == "" {
				t.Errorf("incomplete: %+v", refusal)
			}
			return
		}
		again := must(encode(p, ""))
		back, refusal := decode(again)
		if refusal != nil || string(must(encode(back, ""))) != string(again) {
			t.Errorf("%q is read, written and not read again: %v", data, refusal)
		}
	})
}
