package environ

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Universal is the locale for text in UTF-8 that the C library of most images has.
const Universal = "C.UTF-8"

// Locale returns the locale that a program in the image under root can use for one that its user has elsewhere: the same
// where the image has it, Universal for another one of UTF-8, and none otherwise: bash would warn of it at each start.
func Locale(root, name string) (usable string, is bool) {
	switch {
	case name == "" || name == "C" || name == "POSIX" || knowsAll(root) || hasLocale(root, name):
		return name, true
	case strings.HasSuffix(compiled(name), ".utf8") && hasLocale(root, Universal):
		return Universal, true
	}
	return "", false
}

// locales is the folder of the GNU C library's locales.
const locales = "usr/lib/locale"

// knowsAll reports whether the image has musl's C library, which accepts each name.
func knowsAll(root string) bool {
	found, _ := filepath.Glob(filepath.Join(root, "lib/ld-musl-*"))
	return len(found) > 0
}

// compiled is the name of a locale as localedef writes it: en_US.utf8 for en_US.UTF-8.
func compiled(name string) string {
	language, set, _ := strings.Cut(name, ".")
	set, modifier, modified := strings.Cut(set, "@")
	if set != "" {
		language += "." + strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(set))
	}
	if modified {
		language += "@" + modifier
	}
	return language
}

func hasLocale(root, name string) bool {
	if strings.Contains(name, "/") {
		return false
	}
	archived := archive(filepath.Join(root, locales, "locale-archive"))
	return slices.ContainsFunc([]string{name, compiled(name)}, func(name string) bool {
		info, err := os.Stat(filepath.Join(root, locales, name))
		return err == nil && info.IsDir() || bytes.Contains(archived, []byte("\x00"+name+"\x00"))
	})
}

// Of an archive of locales: its first word, how many words its head has, and which of these are the place and the length
// of the names.
const (
	archiveMagic = 0xde020109
	archiveHead  = 8
	namesAt      = 5
	namesLength  = 6
	longestNames = 1 << 20
)

// archive returns the names in an archive of locales, each between zero bytes; nil where there is none.
func archive(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [archiveHead]uint32
	if err := binary.Read(f, binary.NativeEndian, &head); err != nil || head[0] != archiveMagic || head[namesLength] > longestNames {
		return nil
	}
	names := make([]byte, head[namesLength])
	if _, err := f.ReadAt(names, int64(head[namesAt])); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return slices.Concat([]byte{0}, names, []byte{0})
}
