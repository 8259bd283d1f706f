package agent

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"cosplay/internal/prose"
	"cosplay/internal/terminal"
)

// adminSocket is the socket of an agent that needs no sudo, if the host's admin has set it
// up for the system's NVML library.
const adminSocket = "/run/cosplay/agent.sock"

// rootCommand is the command line that sudo has to allow for changes through an NVML library; "" is the system's.
func rootCommand(binary, library string) []string {
	command := []string{binary, "agent", "--privileged"}
	if library != "" {
		command = append(command, "--library", library)
	}
	return command
}

// sudoersLine is the line that permits a user's cosplay to change GPUs. It has no wildcard,
// so it permits this command only.
func sudoersLine(user, binary, library string) string {
	words := prose.Each(rootCommand(binary, library), sudoersEscape.Replace)
	return fmt.Sprintf("%s ALL=(root) NOPASSWD: %s", sudoersEscape.Replace(user), strings.Join(words, " "))
}

// sudoersEscape escapes the characters that have a meaning in a line or pattern of sudo.
var sudoersEscape = strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`, "=", `\=`, " ", `\ `, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "!", `\!`, `"`, `\"`, "#", `\#`)

//go:embed systemd.txt
var units string

// SystemdUnits are the units of a host whose admin prefers a socket to sudo: systemd
// starts an agent for each connection, and the kernel states which user it is from.
func SystemdUnits(binary string) string {
	return fmt.Sprintf(units, adminSocket, binary)
}

// privilegedLine connects to a child that may change GPUs, by the admin's socket or else
// by sudo, which asks no question and fails without a rule.
func (o Options) privilegedLine() (*line, error) {
	if o.Far != nil {
		return o.Far.line("--change")
	}
	if o.Library == "" {
		if line, err := dial(adminSocket); err == nil {
			return line, nil
		}
	}
	self, err := self()
	if err != nil {
		return nil, err
	}
	sudo, err := exec.LookPath("sudo")
	if err != nil {
		return nil, o.refused("there is no sudo on this machine")
	}
	// In a new session, sudo does not use the terminal.
	return spawn(append([]string{sudo, "-n", "--"}, rootCommand(self, o.Library)...), &syscall.SysProcAttr{Setsid: true})
}

func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the cosplay binary to start its agent: %w", err)
	}
	return path, nil
}

// Installed is the path of a binary that a rule of sudo may name.
const Installed = "/usr/local/bin/cosplay"

// SudoError is the error of a change for which sudo does not start the root agent.
type SudoError struct {
	prose.Advice
	Why  string // in sudo's words
	Line string // of sudoers that permits the change
}

// Unwrap returns the advice, so that prose.AdviceOf finds it.
func (e *SudoError) Unwrap() error { return e.Advice }

func (o Options) refused(why string) error {
	self, err := self()
	if err != nil {
		return err
	}
	fix := "let an admin add one line with visudo -f /etc/sudoers.d/cosplay:"
	if _, err := Trusted(self); err != nil { // with a rule, every user able to change it could become root
		fix = fmt.Sprintf("install cosplay where root alone can change it:\n    sudo install -m 0755 %s %s\n  %s", terminal.ShellWord(self), Installed, prose.Capital(fix))
		self = Installed
	}
	line := sudoersLine(o.User, self, o.Library)
	return &SudoError{Why: why, Line: line, Advice: prose.Advice{What: "changing a GPU takes root, and sudo does not give it to cosplay: " + why,
		Fix: fix + "\n    " + line + "\n  cosplay doctor checks it. Or run sudo cosplay apply"}}
}
