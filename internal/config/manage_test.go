package config

import (
	"fmt"
	"strings"

	"cosplay/internal/resource"
)

// MarshalJSON writes what a host permits for the golden files: each word with whether it is there.
func (m Manage) MarshalJSON() ([]byte, error) {
	var all []string
	for _, word := range resource.ManageWords() {
		with := m
		with.permit(word)
		all = append(all, fmt.Sprintf("%q: %t", strings.ReplaceAll(word, "-", "_"), m == with))
	}
	return []byte("{" + strings.Join(all, ", ") + "}"), nil
}
