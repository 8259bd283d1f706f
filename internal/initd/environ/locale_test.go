package environ_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cosplay/internal/initd/environ"
	"cosplay/internal/need"
)

// TestLocale: a program gets a locale that its image has.
func TestLocale(t *testing.T) {
	bare, plain, musl := t.TempDir(), t.TempDir(), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(plain, "usr/lib/locale/C.utf8"), 0o755), os.MkdirAll(filepath.Join(plain, "usr/lib/locale/de_DE@euro"), 0o755),
		os.MkdirAll(filepath.Join(musl, "lib"), 0o755), os.WriteFile(filepath.Join(musl, "lib/ld-musl-x86_64.so.1"), nil, 0o755),
		os.MkdirAll(filepath.Join(bare, "usr/lib/locale"), 0o755), os.WriteFile(filepath.Join(bare, "usr/lib/locale/locale-archive"), []byte("no archive"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ root, name, want string }{
		{bare, "C", "C"}, {bare, "POSIX", "POSIX"}, {bare, "", ""},
		{bare, "en_US.UTF-8", "none"}, {bare, "C.UTF-8", "none"}, {bare, "../../..", "none"},
		{plain, "C.UTF-8", "C.UTF-8"}, {plain, "en_US.UTF-8", "C.UTF-8"}, {plain, "de_DE.utf8@euro", "none"},
		{plain, "de_DE@euro", "de_DE@euro"}, {plain, "de_DE", "none"},
		{musl, "en_US.UTF-8", "en_US.UTF-8"},
	} {
		got, is := environ.Locale(c.root, c.name)
		if !is {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%q becomes %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLocaleArchive: the names in an archive of glibc are found, and no others.
func TestLocaleArchive(t *testing.T) {
	if _, err := exec.LookPath("localedef"); err != nil {
		need.Lacking(t, "%v", err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/locale"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("localedef", "--prefix", root, "-i", "en_US", "-f", "ISO-8859-1", "en_US.ISO-8859-1").CombinedOutput(); err != nil {
		need.Lacking(t, "localedef: %v %s", err, out)
	}
	if got, is := environ.Locale(root, "en_US.ISO-8859-1"); !is || got != "en_US.ISO-8859-1" {
		t.Errorf("%q %t", got, is)
	}
	if got, is := environ.Locale(root, "en_GB.UTF-8"); is {
		t.Errorf("%q", got)
	}
}
