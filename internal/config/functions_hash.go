package config

import (
	"crypto/md5"  // #nosec G501 -- a checksum that configurations ask for by name
	"crypto/sha1" // #nosec G505 -- likewise
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"

	"github.com/zclconf/go-cty/cty/function"
)

func md5Sum(data []byte) []byte {
	sum := md5.Sum(data) // #nosec G401
	return sum[:]
}

func sha1Sum(data []byte) []byte {
	sum := sha1.Sum(data) // #nosec G401
	return sum[:]
}

func sha256Sum(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

func sha512Sum(data []byte) []byte {
	sum := sha512.Sum512(data)
	return sum[:]
}

func inHex(data []byte) string { return hex.EncodeToString(data) }

func inBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// digestOf returns a function that computes a text's digest.
func digestOf(sum func([]byte) []byte, write func([]byte) string) function.Function {
	return mapping("The checksum of a text.", func(s string) (string, error) { return write(sum([]byte(s))), nil }, "str")
}
