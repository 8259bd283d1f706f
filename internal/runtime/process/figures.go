package process

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// figures is the content of a session folder's session.json. The tags of the types of
// resource are part of the file; testdata/fields.txt lists all fields.
type figures struct {
	// Body is what List reports as long as the file was not changed. A file of an older cosplay has none.
	Body *resource.Body `json:"container,omitempty"`

	Session resource.Session `json:"session"`
	Slice   string           `json:"slice"`          // UUID of the MIG slice or of the whole GPU
	CUDA    bool             `json:"cuda,omitempty"` // whether the CUDA driver is disguised, too

	Secret map[string]string `json:"secret_env,omitempty"` // which the session leaves out
}

// The file begins with a sum of the rest, which only the state's key can make. If the sum is correct, List uses the
// body in front of the session and does not parse the rest, which is faster for a thousand sessions.
const (
	beforeSum     = "{\n  \"sum\": \""
	afterSum      = `",`
	beforeSession = ",\n  \"session\": "
)

func (r Runtime) summer() hash.Hash { return hmac.New(sha256.New, []byte(r.Owner.Key)) }

func sumOf(rest []byte, by hash.Hash) []byte {
	by.Reset()
	by.Write(rest)
	return hex.AppendEncode(nil, by.Sum(nil))
}

func (r Runtime) writeFigures(dir string, f figures) error {
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	rest := append(content[1:], '\n')
	whole := slices.Concat([]byte(beforeSum), sumOf(rest, r.summer()), []byte(afterSum), rest)
	// Not synced: the state has the session, and a file that is lost with the power is drift, which apply repairs.
	if err := durable.ReplaceFile(filepath.Join(dir, figuresFile), whole, 0o400); err != nil {
		return fmt.Errorf("write session.json: %w", err)
	}
	return nil
}

// untouched is the body of a file whose sum, by the key of summer, is correct.
func untouched(file []byte, summer hash.Hash) (resource.Body, bool) {
	sum, rest, summed := bytes.Cut(bytes.TrimPrefix(file, []byte(beforeSum)), []byte(afterSum))
	if !summed || !hmac.Equal(sum, sumOf(rest, summer)) {
		return resource.Body{}, false
	}
	head, _, _ := bytes.Cut(rest, []byte(beforeSession))
	var f struct {
		Body *resource.Body `json:"container"` // as in figures
	}
	err := jsonv2.Unmarshal(slices.Concat([]byte("{"), head, []byte("}")), &f)
	if err != nil || f.Body == nil {
		return resource.Body{}, false
	}
	return *f.Body, true
}

func readFigures(dir string) (figures, error) {
	file, err := os.ReadFile(filepath.Join(dir, figuresFile))
	if err != nil {
		return figures{}, err
	}
	return parseFigures(dir, file)
}

var errDamaged = errors.New("session.json is damaged. Fix: cosplay apply writes it again")

func parseFigures(dir string, file []byte) (figures, error) {
	var f figures
	if json.Unmarshal(file, &f) != nil || f.Session.ID != filepath.Base(dir) {
		return f, fmt.Errorf("%s: %w", dir, errDamaged)
	}
	f.Session.Secret = f.Secret
	return f, nil
}
