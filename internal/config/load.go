package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Options provides everything outside the files that the configuration needs.
type Options struct {
	Dir  string // absolute path of the project's folder: relative paths start there
	Home string // absolute path of the user's home, for ~; "" if there is none

	Files fs.FS                                   // from the root, for file(); with nil, no file is readable
	Env   func(name string) (set string, is bool) // for env(); with nil, no variable is set

	Version string // of cosplay, for required_version

	Timestamp string // of the plan, in the form of RFC 3339, for plantimestamp()

	// Begin is called when an evaluation begins, and returns a channel that is closed when the time for it is over;
	// with nil there is no limit.
	Begin func() <-chan struct{}

	// Inputs give values to variables; later ones override earlier ones.
	Inputs []Input

	// MayMiss permits variables without a value: expressions that use one are checked by type only. HostsMayMiss
	// permits them in host blocks, too.
	MayMiss, HostsMayMiss bool

	// OnlyUnwritten drops all sessions except those of the file Unwritten. Hosts, targets, variables and locals of
	// the other files stay in effect.
	OnlyUnwritten bool

	// Target finds a GPU of the catalog by any common spelling, and Simulate returns what is wrong with the text of
	// "simulate", if anything. Users see their errors; errors with the methods Summary and Detail are shown in these
	// two parts.
	Target  func(typed string) (resource.Target, error)
	Catalog func() []resource.Target // all targets; with nil there are none

	// Derive adds to a target what follows from its SMs, clock and compute capability, and reports whether it is one
	// of Capabilities.
	Derive       func(resource.Target) (resource.Target, bool)
	Capabilities func() []string

	Simulate func(spec string) error
}

// Unwritten is the name of a file that cosplay generates. Diagnostics do not mention places in it.
const Unwritten = ""

// ReadFiles returns the contents of every *.hcl and *.hcl.json file in the root of a file system, by name, for Load.
// It skips hidden files, because editors store unsaved copies in them. An error is the file system's, or names an
// entry that is not a regular file.
func ReadFiles(fsys fs.FS) (map[string][]byte, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	files, total := map[string][]byte{}, 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".hcl.json") || strings.HasPrefix(name, ".") {
			continue
		}
		info, err := fs.Stat(fsys, name) // the target of a link
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s is a link that leads nowhere; remove it, or make what it leads to", name)
		case err != nil:
			return nil, err
		case info.IsDir():
			continue
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is no file; remove it, or give it a name that does not end so", name)
		}
		if total > MaxSource {
			continue // Load reports the file with which the limit is exceeded
		}
		file, err := fsys.Open(name)
		if err != nil {
			return nil, err
		}
		files[name], err = io.ReadAll(io.LimitReader(file, MaxSource+1))
		total += len(files[name])
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Load evaluates the files of a project, given as contents by name. The diagnostics are all mistakes, in the order of
// the files. If one of them is an error, the Intent contains only Files, so that no caller acts on an incomplete
// configuration.
func Load(files map[string][]byte, o Options) (*Intent, hcl.Diagnostics) {
	l := newLoader(o)
	blocks := l.prepare(files)
	if o.OnlyUnwritten {
		for _, kind := range []string{"session", "moved", "import", "removed", "output", "check"} {
			blocks[kind] = slices.DeleteFunc(blocks[kind], func(b *hcl.Block) bool { return b.DefRange.Filename != Unwritten })
		}
	}
	l.settleAll()
	l.validate()
	readAll(blocks["host"], l.readHost) // first, because sessions refer to hosts
	// An Intent without sessions has an empty list. A session is large: the list should not grow by copying.
	l.sessions = make([]Session, 0, len(blocks["session"]))
	readAll(blocks["session"], l.readSession)
	readAll(blocks["moved"], l.readMoved)
	readAll(blocks["import"], l.readImport)
	readAll(blocks["removed"], l.readRemoved)
	readAll(blocks["output"], l.readOutput)
	readAll(blocks["check"], l.readCheck)
	l.checkNames(l.sessions)
	l.checkPorts()
	l.checkContainerNames(l.sessions)
	l.checkMoved()
	l.checkImports()
	l.checkTriggers()
	l.checkDepends()
	l.checkClustered()

	slices.SortStableFunc(l.diags, compareDiagnostics)
	l.diags = fewer(l.diags)
	if l.diags.HasErrors() {
		return &Intent{Files: l.files}, l.diags
	}
	if len(l.hosts) == 0 {
		l.hosts = []Host{defaultHost(LocalHost)}
	}
	slices.SortFunc(l.hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.sessions, func(a, b Session) int { return a.Address.Compare(b.Address) })
	l.imports = slices.DeleteFunc(l.imports, func(i Import) bool { return i.ID == "" })
	return &Intent{State: l.state, l: l, Hosts: l.hosts, Sessions: l.sessions, Moves: l.moves, Removals: l.removals, Imports: l.imports,
		Variables: l.values(), Missed: l.missedNames(), Files: l.files}, l.diags
}

func readAll(blocks hcl.Blocks, read func(*hcl.Block)) {
	for _, b := range blocks {
		read(b)
	}
}

// Hosts returns the valid host blocks, by name, so that objects on a host can be removed even if the rest of the
// configuration is invalid.
func Hosts(files map[string][]byte, o Options) []Host {
	l := newLoader(o)
	blocks := l.prepare(files)
	var sound []Host
	for _, b := range blocks["host"] {
		l.hosts = nil
		l.forget()
		l.readHost(b)
		if !l.diags.HasErrors() {
			sound = append(sound, l.hosts...)
		}
	}
	slices.SortFunc(sound, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	return sound
}

// loader is one Load in progress.
type loader struct {
	Options
	reporter
	base      *hcl.EvalContext // the scope that all expressions share
	budget    *budget
	reads     reads
	nodes     map[string]*node // by name, "var.image"
	chain     []*node          // nodes under evaluation, each needed by the previous one
	variables map[string]*variable
	missed    []*variable // variables without a value that may have none
	unmatched []string    // environment variables with the prefix that match no variable
	unread    []Input
	notRead   []byte // names of input files with mistakes
	hosts     []Host
	sessions  []Session
	shared    Session // what the sessions of a block have in common, while it is read
	outputs   []output
	checks    []check
	state     string // the content of the cosplay block
	depends   []dependence
	blocks    map[string]instances // of the session blocks that have been read
	named     []string             // names of session blocks
	unborn    *liveScope           // the sessions before they exist; nil until first needed
	moves     []Move
	removals  []Removal
	imports   []Import

	declared map[string]hcl.Range // by kind and name, `host "lab"`: the declarations so far
	targets  map[string]targetAnswer
	own      map[string]*ownTarget // by folded name
	hidden   map[string]bool       // sensitive texts of variables and locals; nil until first needed
}

func newLoader(o Options) *loader {
	l := &loader{
		Options:   o,
		reporter:  reporter{files: map[string]*hcl.File{}, reported: map[hcl.Range]hcl.Diagnostics{}},
		budget:    newBudget(),
		reads:     reads{},
		nodes:     map[string]*node{},
		blocks:    map[string]instances{},
		variables: map[string]*variable{},
		targets:   map[string]targetAnswer{},
		own:       map[string]*ownTarget{},
	}
	l.budget.begin(o)
	l.functions = withCore(functions(o, l.budget, l.reads))
	// As in Terraform, the first two paths are relative to cosplay's working directory.
	path := map[string]cty.Value{"module": cty.StringVal("."), "root": cty.StringVal("."), "cwd": cty.StringVal(l.Dir)}
	l.base = &hcl.EvalContext{Variables: map[string]cty.Value{"path": cty.ObjectVal(path)}, Functions: l.functions}
	return l
}

// prepare parses all files and registers everything that other blocks can refer to. It returns the blocks by kind.
func (l *loader) prepare(files map[string][]byte) map[string]hcl.Blocks {
	var all hcl.Blocks
	l.reads.text(files)
	for _, name := range sortedKeys(files) {
		all = append(all, l.parse(name, files[name])...)
	}
	blocks := all.ByType()
	l.declared = make(map[string]hcl.Range, len(all))
	l.readSettings(blocks["cosplay"])
	for _, b := range blocks["session"] {
		l.named = append(l.named, b.Labels...)
	}
	readAll(blocks["variable"], l.readVariable)
	l.takeInputs()
	readAll(blocks["locals"], l.readLocals)
	readAll(blocks["target"], l.readTarget)
	l.declareCatalog()
	return blocks
}

// declare registers a block's label as its name. It reports the reason and fails if the label is not a valid name or
// another block of the kind has it.
func (l *loader) declare(b *hcl.Block) (string, bool) {
	name, ok := l.label(b)
	if !ok {
		return "", false
	}
	id := fmt.Sprintf("%s %q", b.Type, name)
	if first, taken := l.declared[id]; taken {
		l.complain(b.LabelRanges[0], fmt.Sprintf("%s is there twice", id),
			"Another %s is declared at %s. Give this one another name, or remove one of the two.", id, place(first))
		return "", false
	}
	l.declared[id] = b.DefRange
	return name, true
}

// label returns a block's only label.
func (r *reporter) label(b *hcl.Block) (string, bool) {
	schema := fileSchema.block(b.Type)
	what, sample := schema.what, schema.Label
	switch {
	case len(b.Labels) == 0:
		r.complain(b.TypeRange, fmt.Sprintf("%s without a name", b.Type),
			"Write the name in quotes between the word and the brace, like:\n%s", schema.sample())
	case len(b.Labels) > 1:
		r.complain(b.LabelRanges[1], fmt.Sprintf("%s with more than one name", b.Type),
			"%s has one name. Keep %q and remove what follows it.", prose.Capital(what), b.Labels[0])
	case !namePattern().MatchString(b.Labels[0]):
		r.complain(b.LabelRanges[0], fmt.Sprintf("%q cannot be the name of %s", b.Labels[0], what),
			"A name starts with a letter or _, continues with English letters, digits, _ and -, and has at most %d characters. Write it like %q.", maxName, sample)
	default:
		return b.Labels[0], true
	}
	return "", false
}

// maxName keeps cosplay-NAME-9999 within the 63 characters of a host name.
const maxName = 50

var namePattern = pattern.Of(fmt.Sprintf(`^[a-zA-Z_][a-zA-Z0-9_-]{0,%d}$`, maxName-1))

// checkNames reports sessions with different addresses that would have the same container name.
func (r *reporter) checkNames(sessions []Session) {
	seen := make(map[string]*Session, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		short := s.Address.Short()
		other, taken := seen[short]
		if !taken {
			seen[short] = s
			continue
		}
		r.complain(s.Ranges.Decl, fmt.Sprintf("two sessions would be the container cosplay-%s", short),
			"%s and %s, declared at %s, have the same short name, %s. Rename one of the two.", s.Address, other.Address, place(other.Ranges.Decl), short)
	}
}

// maxMistakes limits the diagnostics of a configuration, since a person reads them from the start.
const maxMistakes = 100

// fewer returns the first diagnostics, among them an error if there is any.
func fewer(diags hcl.Diagnostics) hcl.Diagnostics {
	if len(diags) <= maxMistakes {
		return diags
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) }) // errors first
	last := *diags[maxMistakes]
	last.Detail += fmt.Sprintf(" %d more follow, which are not shown.", len(diags)-maxMistakes-1)
	return append(diags[:maxMistakes:maxMistakes], &last)
}

func compareDiagnostics(a, b *hcl.Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Subject.Filename, b.Subject.Filename),
		cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte),
		cmp.Compare(a.Subject.End.Byte, b.Subject.End.Byte),
		cmp.Compare(a.Summary, b.Summary),
		cmp.Compare(a.Detail, b.Detail),
	)
}
