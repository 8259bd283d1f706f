// Package schema has the JSON schema of what commands write with --json, for tests.
package schema

import _ "embed" // the file

//go:embed cosplay.json
var JSON []byte
