package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// The files of the admin of a host. In the one, a line is a UUID and the MHz of a clock lock from before cosplay, which
// NVML cannot read. In the other, it is a rule: a UUID or * for each GPU, and then words; without it, users may change
// everything.
const (
	BaselineClocks = "/etc/cosplay/baseline-clocks"
	PolicyFile     = "/etc/cosplay/gpus"
)

// adminFile reads a file that only root can change; what follows a # is a comment.
func adminFile(path string) (f resource.AdminFile) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return f
	}
	f.Path = path
	real, err := trustedFile(path)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(real)
	}
	if err != nil {
		f.Unread, f.Hidden = err.Error(), errors.Is(err, fs.ErrPermission)
	}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			f.Lines = append(f.Lines, resource.AdminLine{Number: i + 1, Words: words})
		}
	}
	return f
}

// unread is why a file of the admin cannot be relied on.
func unread(f resource.AdminFile) error {
	switch {
	case f.Unread == "":
		return nil
	case f.Hidden:
		return prose.Advice{What: f.Unread, Cause: fs.ErrPermission} // this user may not read it
	}
	return errors.New(f.Unread)
}

// ClocksOf are the clock locks from before cosplay, in MHz by UUID. The agent of root trusts no other user about them.
func ClocksOf(f resource.AdminFile) (map[string]int, error) {
	if err := unread(f); err != nil {
		return nil, fmt.Errorf("the list of clock locks from before cosplay cannot be relied on: %w", err)
	}
	clocks := map[string]int{}
	for _, l := range f.Lines {
		mhz, err := 0, error(nil)
		if len(l.Words) == 2 {
			mhz, err = strconv.Atoi(l.Words[1])
		}
		if len(l.Words) != 2 || err != nil || mhz <= 0 {
			return nil, fmt.Errorf("%s:%d: %q is not a UUID and a clock in MHz", f.Path, l.Number, strings.Join(l.Words, " "))
		}
		clocks[l.Words[0]] = mhz
	}
	return clocks, nil
}
