package watch

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

//go:embed systemd.txt
var unitsText string

var unitsTemplate = template.Must(template.New("systemd.txt").Parse(unitsText))

// hardening are the restrictions under which a fleet can be repaired. The agent that changes GPUs has its own unit;
// without it, cosplay runs sudo, which NoNewPrivileges forbids.
const hardening = `# Remove the next line if cosplay changes GPUs by sudo, and not by cosplay-agent.socket.
NoNewPrivileges=yes
ProtectSystem=full
ProtectHostname=yes
ProtectClock=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
UMask=0077
`

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
	advice := ""
	if u.User == "root" {
		advice = "# Better another user: a configuration reads files and names mounts with the rights of this one.\n"
	}
	if len(u.Secrets) > 0 {
		advice += "# Not in this unit: the values of var." + strings.Join(u.Secrets, ", var.") + ". Write them into cosplay.hclvars, readable by this user alone.\n"
	}
	var b strings.Builder
	err := unitsTemplate.Execute(&b, map[string]string{
		"Dir": strings.ReplaceAll(u.Dir, "%", "%%"), "Name": resource.SafeName(u.Name), "Command": strings.Join(words, " "),
		"Common": fmt.Sprintf("%sUser=%s\nWorkingDirectory=%s\n%s", advice, u.User, strings.ReplaceAll(u.Dir, "%", "%%"), hardening),
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
