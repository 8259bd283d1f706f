// Package checksum protects JSON files of cosplay: a field named checksum has the SHA-256 of all other bytes of the
// file. It shows damage, and no forgery. Pure.
package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

const prefix = "sha256:"

// Fill writes the checksum into the first empty checksum field of a file.
func Fill(data []byte) []byte {
	return bytes.Replace(data, []byte(`"checksum": ""`), []byte(`"checksum": "`+Of(data, "")+`"`), 1)
}

// Of returns the checksum of a file that contains the written one.
func Of(data []byte, written string) string {
	before, after, _ := bytes.Cut(data, []byte(written))
	sum := sha256.New()
	sum.Write(before)
	sum.Write(after)
	return prefix + hex.EncodeToString(sum.Sum(nil))
}

// Is reports whether a text has the form of a checksum.
func Is(written string) bool { return len(written) == len(prefix)+2*sha256.Size }
