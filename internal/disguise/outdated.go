package disguise

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cosplay/driver"
	"cosplay/internal/resource"
)

// origin is what a session's disguise was made from, alike for all sessions of a
// host.
type origin struct {
	facades string // digest of what a cosplay puts into sessions
	cosplay string // its version
	driver  string // version of the driver behind the facades; "" where its files do not tell
}

// originMark begins the line of a seal that has it.
const originMark = "made"

// unknownDriver stands for a version that is not known.
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

// originNow is that of a session made by this binary, being of a version of
// cosplay, in front of a driver's files.
func originNow(version string, files []string) (origin, error) {
	facades, err := facadesDigest()
	o := origin{facades: facades, cosplay: version}
	if len(files) > 0 {
		o.driver = DriverVersion(files[0])
	}
	return o, err
}

// facadesDigest is that of what this binary puts in front of a session's GPU. Not
// in it is cosplay-init: what it does is done when a container starts.
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
	files, err := pythonFiles.ReadDir(PythonDir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := pythonFiles.ReadFile(PythonDir + "/" + file.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, file.Name(), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
})

// DriverVersion is what the file of a driver's library tells by its name, with
// all links followed: 550.163.01; "" where that is bare.
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

// Sight is what a glance at a session's folder shows.
type Sight struct {
	Damaged  string              // what of its own files is damaged, in words; "" is nothing
	Outdated []resource.Outdated // what would be made otherwise now
}

// Inspector looks at the folders of many sessions, and at what they have in common
// once: so it is for one look at the world. It may be used by many at once.
type Inspector struct {
	Version string // of this cosplay

	driver sync.Map // how a file of the driver differs, by what is sealed of it
}

// Glance looks at a session's folder by its path. One that is not there has no
// seal.
func (i *Inspector) Glance(dir string) (Sight, error) {
	folder, err := OpenFolder(dir)
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

// Look costs no more than a look at each of a session's files: the content is
// read only of what has another size or time.
func (i *Inspector) Look(f Folder) (Sight, error) {
	made, marks, err := readSeal(f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Sight{}, err
	}
	var damages []string
	library := "" // of the driver, that is another now
	for _, m := range marks {
		if filepath.IsAbs(m.file) {
			if how := i.behind(m); how == isGone || how == wasChanged {
				library = cmp.Or(library, m.file)
			}
		} else if f.looks(m) {
			continue
		} else if how := m.compare(within(f.Dir, m.file), false); how != "" {
			damages = append(damages, Damage{m.file, how}.String())
		}
	}
	s := Sight{Damaged: strings.Join(damages, ", ")}
	s.Outdated, err = i.outdated(made, library)
	return s, err
}

// behind is how a file of the driver differs from what was sealed.
func (i *Inspector) behind(m sealedMark) string {
	if known, ok := i.driver.Load(m); ok {
		return known.(string)
	}
	how := m.compare(within("", m.file), false)
	i.driver.Store(m, how)
	return how
}

// outdated compares what a disguise was made from with what this cosplay would
// make it from. library is one of the driver's that is another now; "" is none.
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

// shortDigest is enough of one to tell two apart, in letters.
const shortDigest = 8

// maker tells whose facades they are. Two builds may call themselves alike.
func (o origin) maker(other origin) string {
	switch {
	case o.facades == "":
		return "an older cosplay"
	case o.cosplay == other.cosplay && other.facades != "":
		return fmt.Sprintf("cosplay %s (%.*s)", o.cosplay, shortDigest, o.facades)
	}
	return "cosplay " + o.cosplay
}

// driverWords are what the driver was that a library is of, and what it is now.
func driverWords(before, library string) (from, to string) {
	from, to = cmp.Or(before, "as applied"), DriverVersion(library)
	if _, err := os.Stat(library); err != nil {
		return from, "gone"
	}
	if to == "" || to == before {
		to = "another"
	}
	return from, to
}
