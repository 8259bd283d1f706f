package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFitsInterrupted: Ctrl-C in the middle of runs ends fits with exit code 130 and leaves nothing. After kill -9 the next command in the
// folder removes the rest.
func TestFitsInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		p := project{t: t, dir: t.TempDir()}
		command := p.command("fits", "--on", "2060,3060,3090", "--", "sh", "-c", "touch begun; exec sleep 300")
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		said, err := command.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(said)
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "Running on RTX 3090") {
			t.Fatalf("%s: it says %q", signal, lines.Text())
		}
		begun := filepath.Join(p.dir, "begun")
		wait(t, "the command begins", func() bool { _, err := os.Stat(begun); return err == nil })
		if err := syscall.Kill(-command.Process.Pid, signal); err != nil { // as a terminal does
			t.Fatal(err)
		}
		for lines.Scan() {
			t.Logf("%s: %s", signal, lines.Text())
		}
		err = command.Wait()
		if exit := (*exec.ExitError)(nil); signal != syscall.SIGKILL && (!errors.As(err, &exit) || exit.ExitCode() != 130) {
			t.Errorf("%s: it ends with %v", signal, err)
		}
		if signal == syscall.SIGKILL {
			p.run("run", "2060", "--simulate", "1 x h200", "--", "true")
		}
		if _, err := os.Stat(filepath.Join(p.dir, ".cosplay")); err == nil {
			t.Errorf("%s: the folder .cosplay is left", signal)
		}
	}
}
