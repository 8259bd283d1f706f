package process

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/wiretest"
)

// TestUntouched: List believes the container of a file only while no byte of the file has
// changed and the key is the same; otherwise it reads the session in it.
func TestUntouched(t *testing.T) {
	r, s := worker(t)
	s.Secret = map[string]string{"TOKEN": "hunter2"}
	made := prepare(t, r, s)
	file := filepath.Join(made.ID, figuresFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := untouched(good, r.summer()); !ok || !cmp.Equal(c, made) {
		t.Errorf("as written it is %+v, %v; want %+v", c, ok, made)
	}
	if c, ok := untouched(good, Runtime{Host: runtime.Host{Owner: resource.Owner{Key: "another"}}}.summer()); ok {
		t.Errorf("with another key it is believed: %+v", c)
	}
	for i := range good {
		bad := []byte(string(good))
		bad[i] ^= 1
		if c, ok := untouched(bad, r.summer()); ok {
			t.Fatalf("with byte %d changed it is believed: %+v", i, c)
		}
	}

	// The session of a changed file counts, with any container in it.
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for name, touched := range map[string]string{
		"of an older cosplay": "{\n  " + text[strings.Index(text, `"session": {`):],
		"a forged hash":       strings.Replace(text, made.Hash, strings.Repeat("0", len(made.Hash)), 1),
		"no sum":              "{" + text[strings.Index(text, ",")+1:],
	} {
		if touched == text {
			t.Fatalf("%s: it was not touched", name)
		}
		if err := os.WriteFile(file, []byte(touched), 0o600); err != nil {
			t.Fatal(err)
		}
		if all := list(t, r); len(all) != 1 || !cmp.Equal(all[0], made) {
			t.Errorf("%s: %+v, want %+v\n%s", name, all, made, touched)
		}
	}

	// A moved project has its sessions in its new folder.
	prepare(t, r, s)
	moved := r
	moved.Folders += "-moved"
	if err := os.Rename(r.Folders, moved.Folders); err != nil {
		t.Fatal(err)
	}
	if all := list(t, moved); len(all) != 1 || all[0].ID != filepath.Join(moved.Folders, s.ID) || all[0].Hash != made.Hash {
		t.Errorf("moved: %+v", all)
	}

	// The name of a folder alone does not make it another session's.
	if err := os.Rename(filepath.Join(moved.Folders, s.ID), filepath.Join(moved.Folders, "worker-4")); err != nil {
		t.Fatal(err)
	}
	if all := list(t, moved); len(all) != 1 || all[0].Session != "worker-4" || all[0].Hash != "damaged" {
		t.Errorf("called otherwise: %+v", all)
	}
}

// TestSecretsArePrivate: sensitive values are in one file of the user, in a folder that
// only the user can read, even if others could read it before.
func TestSecretsArePrivate(t *testing.T) {
	r, s := worker(t)
	s.Secret = map[string]string{"TOKEN": "hunter2"}
	if err := os.MkdirAll(r.Folder(s.ID), 0o755); err != nil {
		t.Fatal(err)
	}
	made := prepare(t, r, s)
	if info, err := os.Stat(made.ID); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	var holders []string
	err := filepath.Walk(r.Folders, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "hunter2") {
			holders = append(holders, info.Name()+" "+info.Mode().String())
		}
		return err
	})
	if want := []string{"session.json -r--------"}; err != nil || !cmp.Equal(holders, want) {
		t.Errorf("the value is in %q, %v; want %q", holders, err, want)
	}
}

var update = flag.Bool("update", false, "write the list of fields of session.json")

// TestFields: sessions run for weeks, and each cosplay after the one that wrote their session.json reads it.
func TestFields(t *testing.T) {
	wiretest.Pin(t, "testdata/fields.txt", *update, "A new field must be left out where it is empty. One that is removed or renamed must still be read from the files of before.", figures{})
}
