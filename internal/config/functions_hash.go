package config

import (
	"crypto/md5"  // #nosec G501 -- a checksum that configurations ask for by name
	"crypto/sha1" // #nosec G505 -- likewise
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"

	"github.com/zclconf/go-cty/cty/function"
)

// digests are the checksums that configurations can ask for, by the names of their functions.
var digests = map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

func sumOf(digest string) func([]byte) []byte {
	return func(data []byte) []byte {
		h := digests[digest]()
		h.Write(data)
		return h.Sum(nil)
	}
}

func inHex(data []byte) string { return hex.EncodeToString(data) }

func inBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func digestOf(sum func([]byte) []byte, write func([]byte) string) function.Function {
	return mapping("The checksum of a text.", func(s string) (string, error) { return write(sum([]byte(s))), nil }, "str")
}
