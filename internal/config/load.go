package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Options are what the configuration needs to know of the world around it.
type Options struct {
	Dir  string // absolute path of the project's folder: relative paths start there
	Home string // absolute path of the user's home: what ~ stands for; "" where there is none

	Files fs.FS                                   // from the root, for file(); nil reads none
	Env   func(name string) (set string, is bool) // for env(); nil has none

	Version string // of cosplay, for required_version

	// Inputs give values to variables, later ones before earlier ones.
	Inputs []Input

	// MayMiss lets variables be without a value: of what such a variable is part of
	// the type alone is judged. HostsMayMiss lets them be so in host blocks, too.
	MayMiss, HostsMayMiss bool

	// OnlyUnwritten lets the sessions of the file Unwritten alone count. Of the
	// others the hosts, targets, variables and locals do.
	OnlyUnwritten bool

	// Target finds a GPU of the catalog by whatever name people give it, and
	// Simulate says what is wrong with the text of "simulate", if anything.
	// Their errors are shown to people; where they have the methods Summary and
	// Detail, in these two parts.
	Target   func(typed string) (resource.Target, error)
	Catalog  func() []resource.Target // all of them; nil has none
	Simulate func(spec string) error
}

// Unwritten is the name of a file that nobody wrote: no place in it means
// anything to people.
const Unwritten = ""

// ReadFiles returns the contents of every *.hcl and *.hcl.json file in the root
// of a file system, by name, for Load. Hidden files are left out: editors keep their
// unsaved copies there. The error is the file system's, or says what is no file.
func ReadFiles(fsys fs.FS) (map[string][]byte, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".hcl.json") || strings.HasPrefix(name, ".") {
			continue
		}
		info, err := fs.Stat(fsys, name) // of what a link leads to
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
		if files[name], err = fs.ReadFile(fsys, name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Load evaluates the files of a project, contents by name. The diagnostics are
// all that is wrong, in the order of the files. With an error among them the
// Intent holds Files only, so that nothing half understood is ever acted on.
func Load(files map[string][]byte, o Options) (*Intent, hcl.Diagnostics) {
	l := newLoader(o)
	blocks := l.prepare(files)
	if o.OnlyUnwritten {
		keepUnwritten(blocks)
	}
	l.settleAll()
	l.validate()
	// Hosts come first: sessions refer to them.
	for _, b := range blocks["host"] {
		l.readHost(b)
	}
	l.sessions = make([]Session, 0, len(blocks["session"]))
	for _, b := range blocks["session"] {
		l.readSession(b)
	}
	for _, b := range blocks["moved"] {
		l.readMoved(b)
	}
	for _, b := range blocks["import"] {
		l.readImport(b)
	}
	for _, b := range blocks["removed"] {
		l.readRemoved(b)
	}
	for _, b := range blocks["output"] {
		l.readOutput(b)
	}
	for _, b := range blocks["check"] {
		l.readCheck(b)
	}
	l.checkNames()
	l.checkPorts()
	l.checkGone()
	l.checkImports()
	l.checkTriggers()
	l.checkDepends()

	slices.SortStableFunc(l.diags, compareDiagnostics)
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

// keepUnwritten drops what files that people wrote say of sessions.
func keepUnwritten(blocks map[string][]block) {
	for _, kind := range []string{"session", "moved", "import", "removed", "output", "check"} {
		blocks[kind] = slices.DeleteFunc(blocks[kind], func(b block) bool { return b.header.Filename != Unwritten })
	}
}

// Hosts reads the host blocks alone, those in which nothing is wrong, by name:
// what was made on a host can be taken away though the rest is not valid.
func Hosts(files map[string][]byte, o Options) []Host {
	l := newLoader(o)
	blocks := l.prepare(files)
	var sound []Host
	for _, b := range blocks["host"] {
		l.hosts, l.diags = nil, nil
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
	base      *hcl.EvalContext // what all expressions share
	functions map[string]function.Function
	nodes     map[string]*node // by name, "var.image"
	chain     []*node          // under way, each for the one before
	variables map[string]*variable
	missed    []*variable // that have no value and may have none
	strays    []string    // places of the environment that give values to nothing
	unread    []Input
	notRead   []byte // files of values that have mistakes
	files     map[string]*hcl.File
	hosts     []Host
	sessions  []Session
	outputs   []output
	checks    []check
	state     string // what the cosplay block says
	depends   []dependence
	reaches   map[string]reach // of the expressions in each session block
	named     []string         // names of session blocks
	guessed   map[string]bool  // session blocks whose instances are not known, for a mistake that was told
	moves     []Move
	removals  []Removal
	imports   []Import

	declared map[string]hcl.Range // by kind and name, `host "lab"`: what is declared so far
	partial  bool                 // some hosts may be missing for a mistake already told
	targets  map[string]targetAnswer
	own      map[string]*ownTarget // by folded name
	hidden   map[string]bool       // sensitive texts of variables and locals; nil until somebody asks

	diags hcl.Diagnostics
	told  map[hcl.Range]hcl.Diagnostics // by subject
}

func newLoader(o Options) *loader {
	l := &loader{
		Options:   o,
		functions: Functions(o),
		nodes:     map[string]*node{},
		reaches:   map[string]reach{},
		guessed:   map[string]bool{},
		variables: map[string]*variable{},
		files:     map[string]*hcl.File{},
		declared:  map[string]hcl.Range{},
		targets:   map[string]targetAnswer{},
		own:       map[string]*ownTarget{},
		told:      map[hcl.Range]hcl.Diagnostics{},
	}
	l.base = l.baseScope()
	return l
}

// prepare parses all files and takes in what the rest may refer to. It returns
// the blocks by kind.
func (l *loader) prepare(files map[string][]byte) map[string][]block {
	blocks := map[string][]block{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, b := range l.parse(name, files[name]) {
			blocks[b.kind] = append(blocks[b.kind], b)
		}
	}
	l.readSettings(blocks["cosplay"])
	for _, b := range blocks["session"] {
		l.named = append(l.named, b.labels...)
	}
	for _, b := range blocks["variable"] {
		l.readVariable(b)
	}
	l.takeInputs()
	for _, b := range blocks["locals"] {
		l.readLocals(b)
	}
	for _, b := range blocks["target"] {
		l.readTarget(b)
	}
	l.declareCatalog()
	return blocks
}

// declare takes a block's label as its name. It fails, after telling why,
// where the label cannot be one or another block of the kind has it.
func (l *loader) declare(b block) (string, bool) {
	name, ok := l.label(b)
	if !ok {
		return "", false
	}
	id := fmt.Sprintf("%s %q", b.kind, name)
	if first, taken := l.declared[id]; taken {
		l.complain(b.labelRanges[0], b.header, fmt.Sprintf("%s is there twice", id),
			"Another %s is declared at %s line %d. Give this one another name, or remove one of the two.", id, first.Filename, first.Start.Line)
		return "", false
	}
	l.declared[id] = b.header
	return name, true
}

// label returns a block's only label.
func (l *loader) label(b block) (string, bool) {
	schema := fileSchema.block(b.kind)
	what, sample := schema.what, schema.Label
	switch {
	case len(b.labels) == 0:
		l.complain(b.kindRange, b.header, fmt.Sprintf("%s without a name", b.kind),
			"Write the name in quotes between the word and the brace: %s \"%s\" {", b.kind, sample)
	case len(b.labels) > 1:
		l.complain(b.labelRanges[1], b.header, fmt.Sprintf("%s with more than one name", b.kind),
			"%s has one name. Keep %q and remove what follows it.", prose.Capital(what), b.labels[0])
	case !isName(b.labels[0]):
		l.complain(b.labelRanges[0], b.header, fmt.Sprintf("%q cannot be the name of %s", b.labels[0], what),
			"A name starts with a letter or _, continues with English letters, digits, _ and -, and has at most %d characters. Write it like %q.", maxName, sample)
	default:
		return b.labels[0], true
	}
	return "", false
}

// maxName keeps cosplay-NAME-9999 within the 63 characters of a host name.
const maxName = 50

func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// checkNames finds sessions that are different in the file and would be the
// same container.
func (l *loader) checkNames() {
	seen := make(map[string]*Session, len(l.sessions))
	for i := range l.sessions {
		s := &l.sessions[i]
		short := s.Address.Short()
		other, taken := seen[short]
		if !taken {
			seen[short] = s
			continue
		}
		l.complain(s.Ranges.Decl, s.Ranges.Decl, fmt.Sprintf("two sessions would be the container cosplay-%s", short),
			"%s and %s, declared at %s line %d, have the same short name, %s. Rename one of the two.", s.Address, other.Address, other.Ranges.Decl.Filename, other.Ranges.Decl.Start.Line, short)
	}
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
