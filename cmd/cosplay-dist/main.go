// Command cosplay-dist writes what cosplay is installed as: the binary, man pages, completions and licenses, in the folders
// that they have below /usr or /usr/local. make install, the archives of a release and the Debian package are copies of
// this tree. It refuses a binary that needs a newer glibc than cosplay supports.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-version"

	"cosplay/internal/cli"
	"cosplay/internal/durable"
)

// oldestGLIBC is the oldest supported version: that of Ubuntu 22.04; Debian 12 and
// RHEL 9 have it or a newer one.
const oldestGLIBC = "2.34"

var errUsage = errors.New(`usage:
  cosplay-dist files FOLDER VERSION BINARY [BINARY INSIDE IT...]
  cosplay-dist sbom FILE VERSION BINARY [BINARY INSIDE IT...]
  cosplay-dist glibc BINARY`)

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 2 && args[0] == "glibc":
		needed, err := neededGLIBC(args[1])
		fail(err)
		fmt.Fprintln(os.Stdout, needed)
	case len(args) > 3 && args[0] == "files":
		cli.Version = args[2]
		fail(writeFiles(args[1], args[3:]))
	case len(args) > 3 && args[0] == "sbom":
		fail(writeSBOM(args[1], args[2], args[3:]))
	default:
		fail(errUsage)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cosplay-dist:", err)
		os.Exit(1)
	}
}

// writeFiles writes the tree. Documents are those of the current folder.
func writeFiles(folder string, binaries []string) error {
	if _, err := neededGLIBC(binaries[0]); err != nil {
		return err
	}
	share := filepath.Join(folder, "share")
	documents := filepath.Join(share, "doc", "cosplay")
	return errors.Join(
		copyFile(filepath.Join(folder, "bin", "cosplay"), binaries[0], 0o755),
		writeManual(filepath.Join(share, "man", "man1")),
		writeCompletions(share),
		copyFile(filepath.Join(documents, "README.md"), "README.md", 0o644),
		copyFile(filepath.Join(documents, "CHANGELOG.md"), "CHANGELOG.md", 0o644),
		copyFile(filepath.Join(documents, "LICENSE"), "LICENSE", 0o644),
		writeLicenses(filepath.Join(documents, "third-party-licenses.txt"), binaries))
}

func copyFile(to, from string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), durable.WriteFile(to, content, mode))
}

func writeCompletions(share string) error {
	root := cli.Command()
	write := func(path string, generate func(string) error) error {
		path = filepath.Join(share, path)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), generate(path))
	}
	return errors.Join(
		write("bash-completion/completions/cosplay", func(path string) error { return root.GenBashCompletionFileV2(path, true) }),
		write("zsh/site-functions/_cosplay", root.GenZshCompletionFile),
		write("fish/vendor_completions.d/cosplay.fish", func(path string) error { return root.GenFishCompletionFile(path, true) }))
}

// neededGLIBC is the newest version of glibc that a binary needs a symbol of; "" for one that is not of Linux. No other
// library may be needed, since packages depend on glibc alone.
func neededGLIBC(binary string) (needed string, err error) {
	f, err := elf.Open(binary)
	if _, other := errors.AsType[*elf.FormatError](err); other { // for a Mac
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	symbols, failed := f.ImportedSymbols()
	if err := errors.Join(err, failed); err != nil {
		return "", err
	}
	if len(libraries) != 1 || libraries[0] != "libc.so.6" {
		return "", fmt.Errorf("%s needs the libraries %q; the package depends on glibc's libc.so.6 alone", binary, libraries)
	}
	newest, oldest := version.Must(version.NewVersion("0")), version.Must(version.NewVersion(oldestGLIBC))
	for _, s := range symbols {
		number, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok { // NVML's, which cosplay looks up when it runs
			continue
		}
		needs, err := version.NewVersion(number)
		if err != nil || needs.GreaterThan(oldest) {
			return "", fmt.Errorf("%s needs %s of glibc %s, but the oldest supported glibc is %s", binary, s.Name, number, oldestGLIBC)
		}
		if needs.GreaterThan(newest) {
			newest, needed = needs, number
		}
	}
	return needed, nil
}
