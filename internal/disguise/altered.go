package disguise

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"cosplay/internal/disguise/verify"
)

// Altered lists, in words and by the check that covers them, the files of a session's disguise and of the driver
// behind it that differ from the seal.
func Altered(dir string) (map[string]string, error) {
	damages, err := Examine(dir)
	if errors.Is(err, fs.ErrNotExist) {
		const words = "unknown: an older cosplay created the session, or the seal of its folder was removed"
		return map[string]string{verify.FacadesCheck: words, verify.FiguresCheck: words, verify.DriverCheck: words}, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, d := range damages {
		check := checkOf(d.File)
		all[check] = strings.TrimPrefix(all[check]+"; "+d.String(), "; ")
	}
	if words := all[verify.DriverCheck]; words != "" {
		all[verify.DriverCheck] = "the driver is another one since: " + words
	}
	return all, nil
}

// checkOf returns the check that covers a file.
func checkOf(file string) string {
	switch {
	case filepath.IsAbs(file):
		return verify.DriverCheck
	case filepath.Base(file) == UsageFile:
		return verify.UsageCheck
	case strings.HasPrefix(file, "lib/"), strings.HasPrefix(file, "real/"), strings.Contains(file, "/lib/"):
		return verify.FacadesCheck
	}
	return verify.FiguresCheck
}
