package transfer

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/go-archive"
)

// TestHostile: whatever the archive of a session has, nothing is written on this machine but below the name that was asked for.
func TestHostile(t *testing.T) {
	outside := t.TempDir()
	for name, hdrs := range map[string][]tar.Header{
		"a file above":                      {folder("out/"), file("../x")},
		"a file above the name":             {folder("out/"), file("out/../x")},
		"a file far above":                  {folder("out/"), file("out/../../../x")},
		"a file beside the name":            {folder("out/"), file(".bashrc")},
		"a file with a similar name":        {folder("out/"), file("out2")},
		"an absolute file":                  {folder("out/"), file(outside + "/x")},
		"through an absolute link":          {folder("out/"), link("out/l", outside), file("out/l/x")},
		"through an absolute link, in here": {folder("out/"), link("out/l", "/"), file("out/l/x")},
		"through a relative link":           {folder("out/"), link("out/l", ".."), file("out/l/x")},
		"through two links":                 {folder("out/"), link("out/a", "b"), link("out/b", ".."), file("out/a/x")},
		"through an unclean link":           {folder("out/"), link("out/./l", ".."), file("out/l/x")},
		"through a link that is the whole":  {link("out", ".."), file("out/x")},
		"through a link that was there":     {folder("out/"), file("out/was/x")},
		"a hard link above":                 {folder("out/"), hard("out/h", "../x")},
		"a hard link beside":                {folder("out/"), hard("out/h", "own")},
		"a hard link to an absolute path":   {folder("out/"), hard("out/h", "/etc/passwd")},
		"a hard link through a link":        {folder("out/"), link("out/l", ".."), hard("out/h", "out/l/own")},
		"a device":                          {folder("out/"), {Name: "out/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, into := range []string{"", "out"} { // a folder that exists; a new name beside the user's files
				dir := t.TempDir()
				if err := errors.Join(os.WriteFile(filepath.Join(dir, "own"), []byte("mine"), 0o600), os.Mkdir(filepath.Join(dir, "out"), 0o755),
					os.Symlink("..", filepath.Join(dir, "out", "was"))); err != nil {
					t.Fatal(err)
				}
				if into != "" {
					if err := os.Rename(filepath.Join(dir, "out"), filepath.Join(dir, "moved")); err != nil {
						t.Fatal(err)
					}
				}
				from := End{Side: &session{found: archive.CopyInfo{Path: "/.", IsDir: true}, hdrs: hdrs}, Path: "/ws/out", Name: "worker:out"}
				err := Copy(ctx(), from, End{Side: Files{}, Path: filepath.Join(dir, into), Name: "here"}, Options{Count: io.Discard})
				if err == nil && !(into != "" && name == "through a link that was there") {
					t.Errorf("into %q: no error", into)
				}
				if info, failed := os.Stat(filepath.Join(dir, "own")); failed != nil || info.Mode() != 0o600 {
					t.Errorf("into %q: the user's file: %v, %v", into, info, failed)
				}
				for _, at := range []string{dir, outside, filepath.Dir(dir)} {
					for _, wrong := range []string{"x", ".bashrc", "out2"} {
						if _, missing := os.Lstat(filepath.Join(at, wrong)); missing == nil {
							t.Errorf("into %q: %s was written into %s: %s", into, wrong, at, tree(t, dir))
						}
					}
				}
			}
		})
	}
}

// TestGuardElsewhere: where the destination is in another session, the archive alone shows its links.
func TestGuardElsewhere(t *testing.T) {
	for _, hdrs := range [][]tar.Header{
		{link("out/./l", ".."), file("out/l/x")}, {link("out/a/", "b"), file("out/a/x")}, {link("out", "/"), file("out/x")}, {file("beside")},
		{link("out/l", ".."), hard("out/h", "out/l/own")},
	} {
		g := guardOf(End{Side: &session{}}, End{Side: &session{}}, "/nowhere", "out")
		for i, h := range hdrs {
			if err := g.check(&h); (err != nil) != (i == len(hdrs)-1) {
				t.Errorf("%s of %v: %v", h.Name, hdrs[0].Name, err)
			}
		}
	}
	if g := guardOf(End{Side: Files{}}, End{Side: &session{}}, "/data", "out"); g.check(&tar.Header{Name: "any"}) != nil {
		t.Error("files of this machine are suspicious")
	}
}

// TestCapability: a program gets no capabilities of its file without --archive.
func TestCapability(t *testing.T) {
	h := tar.Header{Typeflag: tar.TypeReg, Uname: "ada", PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}}
	if disown(&h, 1, 2); len(h.PAXRecords) > 0 || h.Uname != "" {
		t.Errorf("%+v", h)
	}
}
