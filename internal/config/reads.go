package config

import (
	"crypto/sha256"
	"strings"

	"cosplay/internal/prose"
)

// Read is what an evaluation has read: a file of the configuration, or a file or a variable of the environment that an
// expression reads. The values of the variables and the time are inputs, and no reads.
type Read struct {
	Of   string            // in words, for a message: a file's name, or a call like env("HOME")
	Text bool              // Of is a file of the configuration, or all their names
	Sum  [sha256.Size]byte // of what was read
}

// allFiles is the read of the names of all files of the configuration.
const allFiles = "the list of configuration files"

// Reads returns what Load and the evaluations since have read. A configuration that reads the same has the same meaning,
// with the same values of its variables.
func (i *Intent) Reads() []Read {
	if i.l == nil {
		return nil
	}
	all := make([]Read, 0, len(i.l.reads))
	for _, of := range sortedKeys(i.l.reads) {
		all = append(all, i.l.reads[of])
	}
	return all
}

type reads map[string]Read

// text notes the files of the configuration.
func (r reads) text(files map[string][]byte) {
	names := sortedKeys(files)
	for _, name := range names {
		r[name] = Read{Of: name, Text: true, Sum: sha256.Sum256(files[name])}
	}
	r[allFiles] = Read{Of: allFiles, Text: true, Sum: sha256.Sum256([]byte(strings.Join(names, "\x00")))}
}

// note notes what a call of a function has read. Each call of one evaluation reads the same.
func (r reads) note(function string, arguments []string, content []byte) {
	of := function + "(" + strings.Join(prose.Quoted(arguments), ", ") + ")"
	if _, noted := r[of]; !noted && r != nil {
		r[of] = Read{Of: of, Sum: sha256.Sum256(content)}
	}
}
