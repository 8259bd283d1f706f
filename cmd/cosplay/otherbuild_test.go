package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"cosplay/driver"
)

// otherBuild is the program otherbuild of the stories: it writes a cosplay of
// another version into a folder, with the libraries of this one but for those that
// are named: the facades, the simulated driver. There it has others, which do the
// same.
func otherBuild() {
	if err := writeOtherBuild(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// flagsOfELF is the offset of a library's flags in its header, which no program reads on
// x86 and 64-bit ARM.
// thisVersion is the version of cosplay in the stories, whatever the next release is.
const thisVersion = "0.1.0-dev"

const flagsOfELF = 48

var libraries = map[string][]string{
	"facades": {driver.Facade, driver.CUDAFacade},
	"driver":  {driver.NVML, driver.CUDA},
}

func writeOtherBuild(folder, version string, others []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if len(version) != len(thisVersion) || !bytes.Contains(program, []byte(thisVersion)) {
		return fmt.Errorf("%s cannot replace version %s", version, thisVersion)
	}
	program = bytes.ReplaceAll(program, []byte(thisVersion), []byte(version))
	for _, other := range others {
		for _, name := range libraries[other] {
			library, err := driver.Library(name)
			if err != nil {
				return err
			}
			at := bytes.Index(program, library)
			if at < 0 {
				return fmt.Errorf("%s is not in %s", name, self)
			}
			program[at+flagsOfELF]++
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "cosplay"), program, 0o755)
}
