package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cosplay/internal/durable"
	"cosplay/internal/prose"
)

// writeLicenses writes the licenses and notices of the modules in the binaries, and of Go, each text once.
func writeLicenses(path string, binaries []string) error {
	modules, err := modulesOf(binaries)
	if err != nil {
		return err
	}
	delete(modules, "std")
	folders, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}, slices.Sorted(maps.Keys(modules))...)...).Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	var texts prose.Groups[string]
	_ = addLicenses(&texts, "Go", strings.TrimSpace(string(root))) // distributions keep its license elsewhere
	for line := range strings.Lines(string(folders)) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if err := addLicenses(&texts, name+" "+modules[name].Version, folder); err != nil {
			return err
		}
	}
	var all strings.Builder
	for _, text := range texts.Texts {
		fmt.Fprintf(&all, "%s\n\n%s\n%s\n", strings.Join(texts.Of[text], "\n"), text, strings.Repeat("-", 80))
	}
	return durable.WriteFile(path, []byte(all.String()), 0o644)
}

// addLicenses adds the files of a module's folder that state its license.
func addLicenses(texts *prose.Groups[string], module, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		states := func(word string) bool { return strings.HasPrefix(name, word) }
		if e.IsDir() || !slices.ContainsFunc([]string{"license", "licence", "copying", "copyright", "notice", "patents"}, states) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		texts.Add(strings.TrimSpace(string(text)), module)
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no license in %s", module, folder)
	}
	return nil
}
