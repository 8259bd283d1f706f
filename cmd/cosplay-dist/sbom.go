package main

import (
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cosplay/internal/durable"
)

// component is one of CycloneDX, as far as cosplay states it.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

func module(path, version string) component {
	return component{Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
}

// modulesOf are the modules in some binaries by path, with Go's library as std.
func modulesOf(binaries []string) (map[string]component, error) {
	modules := map[string]component{}
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, err
		}
		modules["std"] = module("std", strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path] = module(m.Path, m.Version)
		}
	}
	return modules, nil
}

// writeSBOM writes the modules of a release as CycloneDX: those of its binary, and of
// the binaries inside it.
func writeSBOM(path, release string, binaries []string) error {
	modules, err := modulesOf(binaries)
	if err != nil {
		return err
	}
	sorted := slices.SortedFunc(maps.Values(modules), func(a, b component) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.MarshalIndent(map[string]any{
		"bomFormat":   "CycloneDX",
		"specVersion": "1.5",
		"version":     1,
		"metadata":    map[string]any{"component": component{Type: "application", Name: "cosplay", Version: release}},
		"components":  sorted,
	}, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(data, '\n'), 0o644)
}
