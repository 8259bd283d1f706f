package project

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIdentity: a project has one path, and keeps that of the sessions that an earlier version created by a link.
func TestIdentity(t *testing.T) {
	root := real(t.TempDir())
	folder, link := filepath.Join(root, "real"), filepath.Join(root, "link")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ state, dir string }{
		{"", folder},
		{`{"workspace": "/data", "id": "` + link + `/.cosplay/sessions/default/lab/w"}`, link},
		{`{"workspace": "` + link + `"}`, link},
		{`{"workspace": "` + folder + `"}`, folder},
		{`{"workspace": "` + root + `/moved"}`, folder},
		{`{"workspace": `, folder},
	} {
		for _, name := range []string{"a.json", "b.json"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(test.state), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, by := range []string{folder, link} {
				dir, path := identity(by, filepath.Join(by, name))
				if dir != test.dir || path != filepath.Join(test.dir, name) {
					t.Errorf("%s by %s: %s, %s", test.state, by, dir, path)
				}
			}
		}
	}
}
