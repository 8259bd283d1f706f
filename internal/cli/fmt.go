package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"cosplay/internal/config"
	"cosplay/internal/durable"
	"cosplay/internal/project"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/terminal"
)

type fmtOptions struct{ check, diff, recursive bool }

func (inv *invocation) fmt() *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt [PATH]...",
		Short: "Lay out configuration files in the canonical way",
		Long: `Lay out files in the canonical way and name those that were changed: all *.hcl and *.hclvars files of the folder, or the files and folders that are named. - reads standard input and writes it, laid out, to standard output.

A file with a syntax error is left as it is.

Exit codes: 0 fine; 1 error, or with --check a file that is not laid out so.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && inv.file != "" {
				args = []string{inv.file}
			}
			return inv.runFmt(args, o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.check, "check", false, "change nothing; exit with 1 when a file would be changed")
	flags.BoolVar(&o.diff, "diff", false, "show what is changed")
	flags.BoolVar(&o.recursive, "recursive", false, "folders in folders, too")
	return cmd
}

func (inv *invocation) runFmt(args []string, o fmtOptions) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	if slices.Contains(args, "-") {
		if len(args) > 1 {
			return errors.New("- is standard input, and goes alone; leave it or the others out")
		}
		return inv.fmtInput(o)
	}
	var paths []string
	for _, arg := range args {
		found, err := configFiles(arg, o.recursive)
		if err != nil {
			return err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	changed, failed := []laidOut{}, false
	for _, path := range slices.Compact(paths) {
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		one, ok := inv.layOut(path, src)
		failed = failed || !ok
		if !ok || bytes.Equal(one.before, one.after) {
			continue
		}
		changed = append(changed, one)
		if !o.check {
			if err := rewrite(path, one.after); err != nil {
				return err
			}
		}
	}
	if err := inv.tellLaidOut(changed, o); err != nil {
		return err
	}
	if failed || o.check && len(changed) > 0 {
		return exit(exitError)
	}
	return nil
}

// laidOut is a file before and after.
type laidOut struct {
	path          string
	before, after []byte
}

func (one laidOut) diff() string {
	return string(diff.Diff("old/"+one.path, one.before, "new/"+one.path, one.after))
}

// layOut fails, after telling why, where a file cannot be read.
func (inv *invocation) layOut(path string, src []byte) (laidOut, bool) {
	after, file, diags := config.Format(path, src)
	if diags.HasErrors() {
		render.Diagnostics(inv.Err, inv.style(inv.Err), diags, map[string]*hcl.File{path: file})
	}
	return laidOut{path, src, after}, !diags.HasErrors()
}

// fmtInput lays out standard input. As in a pipe, the text is the answer, unless
// something else was asked for.
func (inv *invocation) fmtInput(o fmtOptions) error {
	src, err := io.ReadAll(inv.In)
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	one, ok := inv.layOut(project.StdinName, src)
	if !ok {
		return exit(exitError)
	}
	switch {
	case o.diff:
		_, err = io.WriteString(terminal.Raw(inv.Out), one.diff())
	case !o.check:
		_, err = terminal.Raw(inv.Out).Write(one.after)
	}
	if err == nil && o.check && !bytes.Equal(one.before, one.after) {
		return exit(exitError)
	}
	return err
}

func (inv *invocation) tellLaidOut(changed []laidOut, o fmtOptions) error {
	if inv.json {
		paths := []string{}
		for _, one := range changed {
			paths = append(paths, one.path)
		}
		return render.JSON(inv.Out, public.Formatted{Format: public.V1, Changed: paths, Written: !o.check})
	}
	for _, one := range changed {
		fmt.Fprintln(inv.Out, one.path)
		if o.diff {
			fmt.Fprint(terminal.Raw(inv.Out), one.diff())
		}
	}
	return nil
}

// configFiles lists what is to be laid out of a file or folder. What is hidden
// is left out, unless it is named.
func configFiles(path string, recursive bool) ([]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file or folder %s", path)
	case err != nil:
		return nil, err
	case !info.IsDir() && !isConfig(path):
		return nil, fmt.Errorf("%s is neither an *.hcl nor an *.hclvars file, nor a folder", path)
	case !info.IsDir():
		return []string{path}, nil
	}
	var found []string
	err = fs.WalkDir(os.DirFS(path), ".", func(at string, entry fs.DirEntry, err error) error {
		hidden := at != "." && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && at != "." && (hidden || !recursive):
			return fs.SkipDir
		case !entry.IsDir() && !hidden && isConfig(at):
			found = append(found, filepath.Join(path, at))
		}
		return nil
	})
	return found, err
}

func isConfig(path string) bool {
	return strings.HasSuffix(path, ".hcl") || strings.HasSuffix(path, ".hclvars")
}

// rewrite puts other contents into a file, where a link leads to it, too.
func rewrite(path string, data []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(real, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
