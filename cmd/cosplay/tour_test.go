package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"

	"cosplay/internal/need"
)

var updateDocs = flag.Bool("update-docs", false, "write outputs and pictures into README and docs")

// TestDocuments runs every command of the console blocks in README and tour, each
// document in a separate home, and compares the output. A comment behind a command
// states an exit code other than 0. In README a command may have no output.
func TestDocuments(t *testing.T) {
	needsBareMachine(t)
	for _, file := range []string{"../../README.md", "../../docs/tour.md"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole := strings.HasSuffix(file, "tour.md")
			got := runConsoles(t, string(text), whole)
			switch {
			case times.ReplaceAllString(got, "T s") == times.ReplaceAllString(string(text), "T s"):
			case *updateDocs:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the commands print something else; after a look, go test ./cmd/cosplay -run TestDocuments -update-docs. Now:\n%s", got)
			}
		})
	}
}

// needsBareMachine ends a test on a machine where the documents would use a GPU, or
// verify would find other programs than those that the tour shows.
func needsBareMachine(t *testing.T) {
	p := project{t: t, dir: t.TempDir()}
	if out := p.run("init", "2060"); !strings.Contains(out, "simulates a host") {
		need.Lacking(t, "the machine has an NVIDIA driver, and the documents simulate a host")
	}
	_, smi := exec.LookPath("nvidia-smi")
	if _, python := exec.LookPath("python3"); smi == nil || python != nil {
		need.Lacking(t, "the tour shows a machine with Python and without nvidia-smi")
	}
}

// bareModules is a folder that hides Python modules of the machine, for PYTHONPATH.
func bareModules(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"torch", "pynvml"} {
		text := fmt.Sprintf("raise ModuleNotFoundError(\"No module named '%s'\", name=%[1]q)\n", name)
		if err := os.WriteFile(filepath.Join(dir, name+".py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var (
	consoles = regexp.MustCompile("(?s)```console\n(.*?)```")
	times    = regexp.MustCompile(`\d+\.\d s`)
	exits    = regexp.MustCompile(`# exit code (\d)$`)
)

// runConsoles is a document with the outputs that its commands have now. Without whole,
// only outputs that the document shows are put in.
func runConsoles(t *testing.T, text string, whole bool) string {
	home, modules := t.TempDir(), bareModules(t)
	dir := home
	return consoles.ReplaceAllStringFunc(text, func(block string) string {
		var out strings.Builder
		out.WriteString("```console\n")
		lines := strings.Split(strings.TrimSuffix(consoles.FindStringSubmatch(block)[1], "\n"), "\n")
		for i, line := range lines {
			command, is := strings.CutPrefix(line, "$ ")
			if !is {
				continue
			}
			shown := whole || i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "$ ")
			fmt.Fprintln(&out, line)
			shell := bounded(t, "sh", "-c", command+"\ncode=$?; pwd >"+home+"/.dir; exit $code")
			shell.Dir = dir
			shell.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C.UTF-8", "COSPLAY_CACHE=", "PYTHONPATH="+modules)
			var failed bytes.Buffer
			shell.Stderr = &failed
			printed, err := shell.Output()
			want := 0
			if m := exits.FindStringSubmatch(line); m != nil {
				want, _ = strconv.Atoi(m[1])
			}
			if code := shell.ProcessState.ExitCode(); code != want {
				t.Errorf("%s: exit code %d, not %d: %v\n%s%s", command, code, want, err, printed, failed.String())
			}
			now, _ := os.ReadFile(home + "/.dir")
			dir = strings.TrimSpace(string(now))
			if shown {
				out.Write(printed)
			}
		}
		return out.String() + "```"
	})
}

// TestPictures: the pictures in README show what the program prints on a terminal.
func TestPictures(t *testing.T) {
	p := project{t: t, dir: t.TempDir()}
	p.run("init", "2060", "--count", "7")
	plan := p.command("plan")
	plan.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR=")
	terminal, err := pty.StartWithSize(plan, &pty.Winsize{Cols: 104, Rows: 50})
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	_, _ = screen.ReadFrom(terminal) // ends with an error when the program has closed its side
	if err := plan.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, theme := range themes {
		file := "../../docs/pictures/plan-" + name + ".svg"
		want := picture("cosplay plan", strings.ReplaceAll(screen.String(), "\r\n", "\n"), theme)
		if have, _ := os.ReadFile(file); string(have) == want {
			continue
		}
		if !*updateDocs {
			t.Errorf("%s shows something else: go test ./cmd/cosplay -run TestPictures -update-docs", file)
		} else if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// theme is the colours of a picture, by the code of the terminal.
type theme struct {
	back, text string
	codes      map[string]string
}

var themes = map[string]theme{
	"light": {"#ffffff", "#1f2328", map[string]string{"31": "#cf222e", "32": "#116329", "33": "#9a6700", "35": "#8250df", "36": "#0a7080"}},
	"dark":  {"#0d1117", "#e6edf3", map[string]string{"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "35": "#d2a8ff", "36": "#56d4dd"}},
}

var codes = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// picture draws what a terminal shows as SVG.
func picture(command, screen string, th theme) string {
	const charWidth, lineHeight, margin = 8.43, 18, 16
	lines := append([]string{"\x1b[2m$\x1b[0m \x1b[1m" + command + "\x1b[0m", ""}, strings.Split(strings.TrimRight(screen, "\n"), "\n")...)
	widest := 0
	var body strings.Builder
	for i, line := range lines {
		column, bold, dim, color := 0, false, false, th.text
		piece := func(text string) {
			if strings.TrimSpace(text) != "" {
				style := ""
				if bold {
					style += ` font-weight="bold"`
				}
				if dim {
					style += ` fill-opacity="0.65"`
				}
				// The length keeps columns aligned whatever font the viewer has.
				fmt.Fprintf(&body, `<text x="%.1f" y="%d" fill="%s"%s textLength="%.1f">%s</text>`+"\n", margin+float64(column)*charWidth, margin+lineHeight*(i+1)-4,
					color, style, float64(len([]rune(text)))*charWidth, html.EscapeString(text))
			}
			column += len([]rune(text))
		}
		for line != "" {
			at := codes.FindStringSubmatchIndex(line)
			if at == nil {
				piece(line)
				break
			}
			piece(line[:at[0]])
			for code := range strings.SplitSeq(line[at[2]:at[3]], ";") {
				switch code {
				case "1":
					bold = true
				case "2":
					dim = true
				case "0", "", "22":
					bold, dim = false, false
					if code != "22" {
						color = th.text
					}
				default:
					color = th.text
					if c, has := th.codes[code]; has {
						color = c
					}
				}
			}
			line = line[at[1]:]
		}
		widest = max(widest, column)
	}
	width, height := int(2*margin+float64(widest)*charWidth), 2*margin+lineHeight*len(lines)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" xml:space="preserve">
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
%s</svg>
`, width, height, width, height, th.back, body.String())
}
