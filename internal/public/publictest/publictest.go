// Package publictest holds what commands write with --json to the checked-in schema.
package publictest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Folder is the path of a folder of the repository, from its root.
func Folder(path string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../..", path)
}

// Check holds the output of a command ("state show") to the schema, in which no field may be missing and none may be
// undeclared. A command without a schema is an error.
func Check(command string, output []byte) error {
	compiler, err := compiled()
	if err != nil {
		return err
	}
	schema, err := compiler.Compile("cosplay.json#/$defs/" + strings.ReplaceAll(command, " ", "-"))
	if err != nil {
		return fmt.Errorf("cosplay %s has no schema: %w", command, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var text json.RawMessage
		if err := decoder.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			return fmt.Errorf("cosplay %s: %w", command, err)
		}
	}
}

var compiled = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	text, err := os.ReadFile(filepath.Join(Folder("docs/schema"), "cosplay.json"))
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, def := range schema.(map[string]any)["$defs"].(map[string]any) {
		if def := def.(map[string]any); def["properties"] != nil {
			def["additionalProperties"] = false // a reader must expect more fields, and a test must not
		}
	}
	c := jsonschema.NewCompiler()
	return c, c.AddResource("cosplay.json", schema)
})
