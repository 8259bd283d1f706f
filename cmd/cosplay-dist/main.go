// Command cosplay-dist writes what a release has besides its binary: man pages,
// completions, and a list of the modules in it. It refuses a binary that needs a newer
// glibc than cosplay supports.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/spf13/cobra/doc"

	"cosplay/internal/cli"
)

// oldestGLIBC is the oldest supported version: that of Ubuntu 22.04; Debian 12 and
// RHEL 9 have it or a newer one.
const oldestGLIBC = "2.34"

func main() {
	if len(os.Args) < 5 {
		fail(errors.New("usage: cosplay-dist FOLDER SBOM VERSION BINARY [BINARY INSIDE IT...]"))
	}
	folder, sbom, release, binaries := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	cli.Version = release
	fail(checkGLIBC(binaries[0]))
	fail(writeManual(folder))
	fail(writeSBOM(sbom, release, binaries))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "cosplay-dist:", err)
		os.Exit(1)
	}
}

func checkGLIBC(binary string) error {
	f, err := elf.Open(binary)
	if _, other := errors.AsType[*elf.FormatError](err); other { // for a Mac
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return err
	}
	oldest := version.Must(version.NewVersion(oldestGLIBC))
	for _, s := range symbols {
		number, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		if needs, err := version.NewVersion(number); err != nil || needs.GreaterThan(oldest) {
			return fmt.Errorf("%s needs %s of glibc %s, but the oldest supported glibc is %s", binary, s.Name, number, oldestGLIBC)
		}
	}
	return nil
}

// writeManual writes man pages and completions. Their dates are that of
// SOURCE_DATE_EPOCH.
func writeManual(folder string) error {
	root := cli.Command()
	pages, completions := filepath.Join(folder, "man", "man1"), filepath.Join(folder, "completions")
	if err := errors.Join(os.MkdirAll(pages, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	return errors.Join(
		doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "cosplay " + cli.Version, Manual: "cosplay"}, pages),
		root.GenBashCompletionFileV2(filepath.Join(completions, "cosplay.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_cosplay")),
		root.GenFishCompletionFile(filepath.Join(completions, "cosplay.fish"), true))
}
