package watch

import (
	_ "embed"
	"strings"
	"text/template"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

//go:embed systemd.txt
var unitsText string

var unitsTemplate = template.Must(template.New("systemd.txt").Parse(unitsText))

// Unit is the fleet that units of systemd keep up.
type Unit struct {
	Dir     string // absolute, of the project
	Name    string // of the project
	User    string // who applies it
	Program string // absolute
	Flags   []string
	Secrets []string // sensitive variables with values in flags, which the unit does not contain
}

// Units writes a service that watches a fleet, a unit that brings it up after a reboot, and a timer. They run as the
// user of the fleet: a configuration can read files and name folders to mount, with that user's rights.
func (u Unit) Units() (string, error) {
	words := prose.Each(append([]string{u.Program}, u.Flags...), quoted)
	var b strings.Builder
	err := unitsTemplate.Execute(&b, map[string]string{
		"Dir": strings.ReplaceAll(u.Dir, "%", "%%"), "Name": resource.SafeName(u.Name), "Command": strings.Join(words, " "),
		"User": u.User, "Secrets": strings.Join(u.Secrets, ", var."),
	})
	return b.String(), err
}

// quoted is a word of a command in a unit: systemd expands % and $, and reads quotes.
func quoted(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$").Replace(word)
	if word != "" && !strings.ContainsAny(word, " \t\n\"'\\;") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(word) + `"`
}
