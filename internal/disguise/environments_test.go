package disguise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PyTorch is prepared in each kind of environment that tools make, whose sitecustomize runs as without a session.
func TestTorchEnvironments(t *testing.T) {
	s := newTorchSession(t, "rtx-3060", "cpu")
	out, err := exec.Command(torchPython, "-c", `import os, sys, sysconfig
print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), "python%d.%d" % sys.version_info[:2])`).Output()
	check(t, err)
	var interpreter, library, version string
	_, err = fmt.Sscan(string(out), &interpreter, &library, &version)
	check(t, err)
	write := func(path, text string) {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o644))
	}
	link := func(old, name string) {
		check(t, os.MkdirAll(filepath.Dir(name), 0o755))
		check(t, os.Symlink(old, name))
	}
	for kind, create := range map[string]func(prefix string){
		"venv": func(prefix string) {
			check(t, exec.Command(torchPython, "-m", "venv", "--without-pip", "--system-site-packages", prefix).Run())
		},
		"copies": func(prefix string) {
			check(t, exec.Command(torchPython, "-m", "venv", "--without-pip", "--system-site-packages", "--copies", prefix).Run())
		},
		"uv": func(prefix string) {
			write(filepath.Join(prefix, "pyvenv.cfg"), "home = /usr/bin\nimplementation = CPython\nuv = 0.9.7\ninclude-system-site-packages = true\n")
			link(interpreter, filepath.Join(prefix, "bin", "python"))
		},
		"conda": func(prefix string) { // an interpreter with a separate library
			binary, err := os.ReadFile(interpreter)
			check(t, err)
			write(filepath.Join(prefix, "bin", "python"), string(binary))
			check(t, os.Chmod(filepath.Join(prefix, "bin", "python"), 0o755))
			files, err := filepath.Glob(filepath.Join(library, "*"))
			check(t, err)
			for _, file := range files {
				if filepath.Base(file) != "sitecustomize.py" {
					link(file, filepath.Join(prefix, "lib", version, filepath.Base(file)))
				}
			}
			link("/usr/lib/python3/dist-packages", filepath.Join(prefix, "lib", "python3", "dist-packages"))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			prefix := filepath.Join(t.TempDir(), "env")
			create(prefix)
			site := "site-packages"
			if kind == "conda" {
				site = "" // Debian's interpreter has no site-packages there
			}
			write(filepath.Join(prefix, "lib", version, site, "sitecustomize.py"), "import sys\nsys.theirs = sys.prefix\n")
			run := func(env []string, program string) string {
				c := exec.Command(filepath.Join(prefix, "bin", "python"), "-c", program)
				c.Env, c.Dir = env, t.TempDir()
				out, err := c.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				return strings.TrimSpace(string(out))
			}
			const whose = `import sys; print(sys.prefix, getattr(sys, "theirs", None))`
			plain := run([]string{"PATH=" + os.Getenv("PATH")}, whose) // the system's sitecustomize precedes that of a venv
			if got, want := run(s.env, whose+`; import torch; print(torch.ones(2, device="cuda").device)`), plain+"\ncuda:0"; got != want || !strings.HasPrefix(got, prefix) {
				t.Errorf("it prints %q, want %q", got, want)
			}
		})
	}
}
