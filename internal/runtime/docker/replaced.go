package docker

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// replaced lists the files and folders of the host that are mounted in a container that runs, and whose place another
// one has taken since, as an editor does that saves by renaming: the container keeps the first. The kernel reports to
// every user what a process has mounted. Of an engine on another machine nothing is known.
func replaced(there *container.InspectResponse) []string {
	pid := there.State.Pid
	if pid == 0 || !runsHere(pid, there.ID) {
		return nil
	}
	inside, here := mountsOf(fmt.Sprint(pid)), mountsOf("self")
	var all []string
	for _, m := range there.Mounts {
		i := slices.IndexFunc(inside, func(k mounted) bool { return k.at == path.Clean(m.Destination) })
		if i >= 0 && m.Type == mount.TypeBind && inside[i].outdated(here, m.Source) {
			all = append(all, m.Source)
		}
	}
	return all
}

// mounted is a line of /proc/PID/mountinfo.
type mounted struct {
	device string // of the file system
	root   string // the path in the file system that is mounted
	at     string
}

// mountsOf reads the mounts of a process, the last one first: it covers the others at its place.
func mountsOf(pid string) []mounted {
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return nil // the container ended meanwhile
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mounted
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			all = append(all, mounted{f[2], unescape.Replace(f[3]), unescape.Replace(f[4])})
		}
	}
	slices.Reverse(all)
	return all
}

// outdated reports whether a mount is not of what is at a path of the host now: it was unlinked there, or has another
// name in the same folder. In any other folder, this process and the engine may see different mounts.
func (m mounted) outdated(here []mounted, source string) bool {
	const unlinked = "//deleted"
	if strings.HasSuffix(m.root, unlinked) {
		return true
	}
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return false
	}
	holds := func(k mounted) bool { return isWithin(k.at, source) }
	under := slices.MaxFunc(append(slices.DeleteFunc(slices.Clone(here), func(k mounted) bool { return !holds(k) }), mounted{}),
		func(a, b mounted) int { return cmp.Compare(len(a.at), len(b.at)) })
	now := path.Join(under.root, strings.TrimPrefix(source, under.at))
	return under.device == m.device && now != m.root && path.Dir(now) == path.Dir(m.root)
}

// isWithin reports whether a path is a folder's or in it.
func isWithin(folder, file string) bool {
	return file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/")
}
