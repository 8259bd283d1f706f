package cli

import (
	"bytes"
	"cmp"
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
	"cosplay/internal/prose"
	"cosplay/internal/public"
	"cosplay/internal/render"
	"cosplay/internal/terminal"
)

type fmtOptions struct{ check, diff, recursive bool }

func fmtCommand(inv *invocation) *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt [PATH]...",
		Short: "Format configuration files in the canonical style",
		Long: `Format files in the canonical style and print the names of those that were changed: all *.hcl and *.hclvars files of the folder, or the named files and folders. With -, format standard input and write it to standard output.

A file with a syntax error is not changed.

Exit codes: 0 fine; 1 error, or with --check a file that is not formatted.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && inv.file != "" {
				args = []string{inv.file}
			}
			return o.run(inv, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.check, "check", false, "change nothing; exit with 1 when a file would be changed")
	flags.BoolVar(&o.diff, "diff", false, "show what is changed")
	flags.BoolVar(&o.recursive, "recursive", false, "folders in folders, too")
	return cmd
}

func (o fmtOptions) run(inv *invocation, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	if slices.Contains(args, "-") {
		if len(args) > 1 {
			return errors.New("- is standard input, and cannot be combined with files; leave one of them out")
		}
		return o.input(inv)
	}
	paths, err := o.files(args)
	if err != nil {
		return err
	}
	changed, failed := []formatted{}, false
	for _, path := range paths {
		src, err := durable.ReadFile(path)
		if err != nil {
			return err
		}
		one, ok := inv.format(path, src)
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
	if err := o.print(inv, changed); err != nil {
		return err
	}
	return exitIf(failed || o.check && len(changed) > 0, exitError)
}

// formatted is a file before and after.
type formatted struct {
	path          string
	before, after []byte
}

func (one formatted) diff() string {
	return string(diff.Diff("old/"+one.path, one.before, "new/"+one.path, one.after))
}

// format formats a file. If it returns false, it has printed the mistakes.
func (inv *invocation) format(path string, src []byte) (formatted, bool) {
	after, file, diags := config.Format(path, src)
	if diags.HasErrors() {
		render.Diagnostics(inv.Err, inv.style(inv.Err), diags, map[string]*hcl.File{path: file})
	}
	return formatted{path, src, after}, !diags.HasErrors()
}

// fmtInput formats standard input. The output is the text, unless a flag asks for
// something else.
func (o fmtOptions) input(inv *invocation) error {
	src, err := io.ReadAll(io.LimitReader(inv.In, config.MaxSource+1))
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	one, ok := inv.format(project.StdinName, src)
	if !ok {
		return exit(exitError)
	}
	switch {
	case o.diff:
		_, err = io.WriteString(terminal.Raw(inv.Out), one.diff())
	case !o.check:
		_, err = terminal.Raw(inv.Out).Write(one.after)
	}
	return cmp.Or(err, exitIf(o.check && !bytes.Equal(one.before, one.after), exitError))
}

func (o fmtOptions) print(inv *invocation, changed []formatted) error {
	if inv.json {
		paths := prose.Each(changed, func(one formatted) string { return one.path })
		return render.JSON(inv.Out, public.Formatted{Format: public.V1, Changed: append([]string{}, paths...), Written: !o.check})
	}
	for _, one := range changed {
		fmt.Fprintln(inv.Out, one.path)
		if o.diff {
			fmt.Fprint(terminal.Raw(inv.Out), one.diff())
		}
	}
	return nil
}

// files are those of all arguments, each once.
func (o fmtOptions) files(args []string) (paths []string, err error) {
	for _, arg := range args {
		found, err := configFiles(arg, o.recursive)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// configFiles lists the files to format: the named one, or those of a folder that are not
// hidden.
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

// rewrite replaces the contents of a file; of a link, those of the file that it names.
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
