package resource

import "strings"

// makers are the words that NVML puts before the part of a name that people use.
var makers = []string{"NVIDIA ", "GeForce ", "Tesla "}

func shortName(name string) string {
	for _, m := range makers {
		name = strings.TrimPrefix(name, m)
	}
	return name
}

// ShortModel is a GPU's product name without the maker's: "H200".
func (m Model) ShortModel() string { return shortName(m.Name) }
