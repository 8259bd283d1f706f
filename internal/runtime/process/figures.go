package process

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cosplay/internal/durable"
	"cosplay/internal/resource"
)

// figures is what a session's folder tells of it.
type figures struct {
	// Container is what List tells as long as nobody touched the file; one of an
	// older cosplay has none.
	Container *resource.Container `json:"container,omitempty"`

	Session resource.Session `json:"session"`
	Slice   string           `json:"slice"`          // UUID of the MIG slice or of the whole GPU
	CUDA    bool             `json:"cuda,omitempty"` // whether the CUDA driver is disguised, too

	Secret map[string]string `json:"secret_env,omitempty"` // which the session leaves out
}

// The file begins with a sum of all that comes after it, which only the state's
// key can make. While it holds, the container before the session can be believed,
// and the rest of a thousand files need not be parsed to list them.
const (
	beforeSum     = "{\n  \"sum\": \""
	afterSum      = `",`
	beforeSession = ",\n  \"session\": "
)

func (r Runtime) sum(rest []byte) []byte {
	sum := hmac.New(sha256.New, []byte(r.Key))
	sum.Write(rest)
	return hex.AppendEncode(nil, sum.Sum(nil))
}

func (r Runtime) writeFigures(dir string, f figures) error {
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	rest := append(content[1:], '\n')
	whole := slices.Concat([]byte(beforeSum), r.sum(rest), []byte(afterSum), rest)
	if err := durable.WriteFile(filepath.Join(dir, figuresFile), whole, 0o400); err != nil {
		return fmt.Errorf("writing the session's figures: %w", err)
	}
	return nil
}

// untouched gives the container of a file that is as it was written.
func (r Runtime) untouched(file []byte) (resource.Container, bool) {
	sum, rest, summed := bytes.Cut(bytes.TrimPrefix(file, []byte(beforeSum)), []byte(afterSum))
	if !summed || !hmac.Equal(sum, r.sum(rest)) {
		return resource.Container{}, false
	}
	head, _, _ := bytes.Cut(rest, []byte(beforeSession))
	var f figures
	err := json.Unmarshal(slices.Concat([]byte("{"), head, []byte("}")), &f)
	if err != nil || f.Container == nil {
		return resource.Container{}, false
	}
	return *f.Container, true
}

// listed is the container of the session in a folder.
func (r Runtime) listed(dir string) (resource.Container, error) {
	file, err := readFile(dir)
	if err != nil {
		return resource.Container{}, err
	}
	if c, ok := r.untouched(file); ok && c.Session == filepath.Base(dir) {
		c.ID = dir // the project may have been moved
		return c, nil
	}
	f, err := parseFigures(dir, file)
	return r.container(dir, f.Session, f.Slice), err
}

func readFile(dir string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, figuresFile)) }

func readFigures(dir string) (figures, error) {
	file, err := readFile(dir)
	if err != nil {
		return figures{}, err
	}
	return parseFigures(dir, file)
}

var errDamaged = errors.New("the session's figures are damaged; cosplay apply writes them anew")

func parseFigures(dir string, file []byte) (figures, error) {
	var f figures
	if json.Unmarshal(file, &f) != nil || f.Session.ID != filepath.Base(dir) {
		return f, fmt.Errorf("%s: %w", dir, errDamaged)
	}
	f.Session.Secret = f.Secret
	return f, nil
}
