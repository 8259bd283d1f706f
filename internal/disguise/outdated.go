package disguise

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cosplay/driver"
	"cosplay/internal/durable"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// origin identifies what a session's disguise was made from. It is equal for all sessions of a host.
type origin struct {
	facades string // digest of the files that this cosplay installs in sessions
	cosplay string // its version
	driver  string // version of the driver behind the facades; "" if its file names do not have it
}

// originMark begins the manifest's line with the origin.
const originMark = "made"

// unknownDriver replaces a version that is not known.
const unknownDriver = "-"

func (o origin) String() string {
	return strings.Join([]string{originMark, o.facades, cmp.Or(o.driver, unknownDriver), o.cosplay}, " ")
}

func parseOrigin(line string) (origin, bool) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) != 4 || fields[0] != originMark {
		return origin{}, false
	}
	o := origin{facades: fields[1], driver: fields[2], cosplay: fields[3]}
	if o.driver == unknownDriver {
		o.driver = ""
	}
	return o, true
}

// MadeFrom identifies the facades and the driver behind them in a session's folder; "" if its manifest does not.
func MadeFrom(dir string) string {
	content, _ := os.ReadFile(filepath.Join(dir, manifestFile))
	first, _, _ := strings.Cut(string(content), "\n")
	made, written := parseOrigin(first)
	if !written {
		return ""
	}
	return made.facades + made.driver
}

// originNow returns the origin of a session that this binary would prepare now.
func originNow(version string, files []string) (origin, error) {
	facades, err := facadesDigest()
	o := origin{facades: facades, cosplay: version}
	if len(files) > 0 {
		o.driver = DriverVersion(files[0])
	}
	return o, err
}

// facadesDigest returns the digest of the files that this binary installs in front of a session's GPU. It leaves out
// cosplay-init, which affects only the start of a container.
var facadesDigest = sync.OnceValues(func() (string, error) {
	sum := sha256.New()
	for _, name := range []string{driver.Facade, driver.CUDAFacade} {
		library, err := driver.Library(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(library))
		sum.Write(library)
	}
	err := eachPythonFile(func(name string, text []byte) error {
		fmt.Fprintln(sum, name, len(text))
		sum.Write(text)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
})

// DriverVersion returns the version in the name of a driver's library after following all links, such as 550.163.01;
// "" if the name has none.
func DriverVersion(library string) string {
	resolved, err := filepath.EvalSymlinks(library)
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(filepath.Base(resolved), ".so.")
	if !strings.Contains(version, ".") {
		return ""
	}
	return version
}

// Sight is the result of a quick inspection of a session's folder.
type Sight struct {
	Damaged  string              // which of its files are damaged, in words; "" if none are
	Outdated []resource.Outdated // what cosplay would install differently now
	Use      *resource.Use       // of the session's programs; nil if its file does not tell
}

// Inspector inspects the folders of many sessions and remembers what they share. Use it for one snapshot only. It is
// safe for concurrent use.
type Inspector struct {
	Version string // of this cosplay

	thorough bool     // reads the content of all files
	driver   sync.Map // by entry of the manifest, how a file of the driver differs
	trees    sync.Map // by treeKey, what is damaged
}

// Glance quickly inspects a session's folder, given by its path. A folder that does not exist has no manifest.
func (i *Inspector) Glance(dir string) (Sight, error) {
	folder, err := durable.OpenFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		outdated, err := i.outdated(origin{}, "")
		return Sight{Outdated: outdated}, err
	}
	if err != nil {
		return Sight{}, err
	}
	defer folder.Close()
	return i.Look(folder)
}

// Look compares size and time of a session's files, and reads the content only of files that differ in these.
func (i *Inspector) Look(f durable.Folder) (Sight, error) {
	made, marks, err := readManifest(f)
	if errors.Is(err, fs.ErrNotExist) {
		marks = func(func(mark) bool) {}
	} else if err != nil {
		return Sight{}, err
	}
	var s Sight
	library := "" // of the driver, that has changed
	damages := slices.DeleteFunc(i.damages(f, marks, &s.Use), func(d Damage) bool {
		if filepath.IsAbs(d.File) && (d.How == isMissing || d.How == wasChanged) {
			library = cmp.Or(library, d.File)
		}
		return filepath.IsAbs(d.File)
	})
	s.Damaged = strings.Join(prose.Each(damages, Damage.String), ", ")
	s.Outdated, err = i.outdated(made, library)
	return s, err
}

// Examine compares the content of a session's files and of the driver's behind them with the manifest, and returns what
// is damaged. If there is no manifest, the error is fs.ErrNotExist.
func Examine(dir string) ([]Damage, error) {
	folder, err := durable.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	_, marks, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	i := Inspector{thorough: true}
	return i.damages(folder, marks, new(*resource.Use)), nil
}

// damages lists the damaged files of a folder and of the driver behind it. It stores what the usage file counts.
func (i *Inspector) damages(f durable.Folder, marks iter.Seq[mark], use **resource.Use) (damages []Damage) {
	for m := range marks {
		how := ""
		if filepath.IsAbs(m.file) {
			how = i.behind(m)
		} else if i.thorough || !m.looks(f) {
			how = m.compare(f.Dir, i.thorough)
		}
		if how == "" && m.digest == counted {
			begins := false
			if begins, *use = counts(f, m.file, m.size); !begins || i.thorough && *use == nil {
				how = isDamaged // programs would not use it: each counts separately
			}
		}
		if report := filepath.Join(filepath.Dir(m.file), ReportFile); m.digest == counted && grown(f, report) {
			damages = append(damages, Damage{report, isLarge})
		}
		if how != "" {
			damages = append(damages, Damage{m.file, how})
		} else if isTree(m.file) {
			damages = append(damages, i.inTree(f.Dir, m)...)
		}
	}
	return damages
}

// inTree lists the damaged files of a tree that a session's folder has a link to, by their paths through it.
func (i *Inspector) inTree(dir string, link mark) []Damage {
	of := treeKey{filepath.Dir(dir), link.digest}
	known, ok := i.trees.Load(of)
	if !ok {
		known = i.behindLink(dir, link.file)
		i.trees.Store(of, known)
	}
	return known.([]Damage)
}

func (i *Inspector) behindLink(dir, link string) []Damage {
	folder, err := durable.OpenFolder(filepath.Join(dir, link))
	if err != nil {
		return []Damage{{link, isMissing}}
	}
	defer folder.Close()
	_, marks, err := readManifest(folder)
	if err != nil {
		return []Damage{{link, isDamaged}}
	}
	all := i.damages(folder, marks, new(*resource.Use)) // it has no usage file
	for at := range all {
		all[at].File = filepath.Join(link, all[at].File)
	}
	return all
}

// treeKey names a tree by the folder of the session folders and what the link to it is.
type treeKey struct{ base, link string }

// behind returns how a file of the driver differs from its entry in the manifest.
func (i *Inspector) behind(m mark) string {
	if known, ok := i.driver.Load(m); ok {
		return known.(string)
	}
	how := m.compare("", i.thorough)
	i.driver.Store(m, how)
	return how
}

// outdated compares the origin of a disguise with the one that this cosplay would use. library is a library of the
// driver that has changed, or "".
func (i *Inspector) outdated(made origin, library string) ([]resource.Outdated, error) {
	now, err := originNow(i.Version, nil)
	if err != nil {
		return nil, err
	}
	var all []resource.Outdated
	if made.facades != now.facades {
		all = append(all, resource.Outdated{Part: resource.Facades, From: made.maker(now), To: now.maker(made)})
	}
	if library != "" {
		from, to := driverWords(made.driver, library)
		all = append(all, resource.Outdated{Part: resource.Driver, From: from, To: to})
	}
	return all, nil
}

// shortDigest returns the beginning of a digest, long enough to distinguish two.
const shortDigest = 8

// maker names the cosplay that made facades. It includes the digest, because two builds can have the same version.
func (o origin) maker(other origin) string {
	switch {
	case o.facades == "":
		return "an older cosplay"
	case o.cosplay == other.cosplay && other.facades != "":
		return fmt.Sprintf("cosplay %s (%.*s)", o.cosplay, shortDigest, o.facades)
	}
	return "cosplay " + o.cosplay
}

// driverWords states the driver version that a library had when it was listed, and its present one.
func driverWords(before, library string) (from, to string) {
	from, to = cmp.Or(before, "as applied"), DriverVersion(library)
	if _, err := os.Stat(library); err != nil {
		return from, "missing"
	}
	if to == "" || to == before {
		to = "another"
	}
	return from, to
}
