// Package publictest holds what commands write with --json to the checked-in schema.
package publictest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"cosplay/docs/reference/schema"
)

// Check holds the output of a command ("state show") to the schema, in which no field may be missing and none may be
// undeclared. A command without a schema is an error.
func Check(command string, output []byte) error {
	all, err := schemas()
	if err != nil {
		return err
	}
	of, err := (&jsonschema.Schema{Ref: "#/$defs/" + strings.ReplaceAll(command, " ", "-"), Defs: all}).Resolve(nil)
	if err != nil {
		return fmt.Errorf("cosplay %s has no schema: %w", command, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := of.Validate(value); err != nil {
			return fmt.Errorf("cosplay %s: %w", command, err)
		}
	}
}

// schemas are the definitions of the schema. Readers must expect more fields than these, and tests must not.
func schemas() (map[string]*jsonschema.Schema, error) {
	var file jsonschema.Schema
	if err := json.Unmarshal(schema.JSON, &file); err != nil {
		return nil, err
	}
	for _, def := range file.Defs {
		if def.Properties != nil {
			def.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
	}
	return file.Defs, nil
}
