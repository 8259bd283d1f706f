package config

import (
	_ "embed"
	"strings"
)

//go:embed advice.txt
var adviceText string

// advice has the texts of advice.txt, by section and word.
var advice = readAdvice(adviceText)

func readAdvice(text string) map[string]map[string]string {
	all, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(text) {
		if name, opens := strings.CutPrefix(line, "## "); opens {
			section = strings.TrimSpace(name)
			all[section] = map[string]string{}
		} else if words, says, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
			for word := range strings.SplitSeq(words, ", ") {
				all[section][word] = strings.TrimSpace(says)
			}
		}
	}
	return all
}

// nextStep returns the fix for a diagnostic of the HCL library that does not state one, by its summary. It starts with
// a space.
func nextStep(summary string) string {
	if step, known := advice["library"][summary]; known {
		return " " + step
	}
	return ""
}
