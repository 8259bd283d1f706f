package config

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every type of the language must have a schema.
func TestJSONSchemaKnowsAllTypes(t *testing.T) {
	for _, b := range Schema().Blocks {
		walkSchema(b, b.Name+".", func(path string, a Attribute) {
			if valueSchemas[a.Type] == nil && a.Words == nil {
				t.Errorf("%s is a %s, which the JSON schema does not know", path, a.Type)
			}
		})
	}
}

// The schema must accept valid configurations and reject typical mistakes.
func TestJSONSchema(t *testing.T) {
	var schema map[string]any
	text, err := json.Marshal(JSONSchema())
	if err != nil || json.Unmarshal(text, &schema) != nil {
		t.Fatal(err)
	}
	right, err := filepath.Glob("testdata/right/*.hcl.json")
	if err != nil || len(right) == 0 {
		t.Fatalf("%v, %v", right, err)
	}
	for _, path := range right {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if problem := accept(t, schema, schema, string(src)); problem != "" {
			t.Errorf("%s is refused: %s", path, problem)
		}
	}
	const session = `{"session": {"worker": {"target": "2060", %s}}}`
	for given, ok := range map[string]bool{
		`"count": 7`: true, `"count": "${2 + 3}"`: true, `"count": "seven"`: false, `"count": 1.5`: false,
		`"sudo": true`: true, `"sudo": "yes"`: false, `"pull": "never"`: true, `"pull": "sometimes"`: false,
		`"env": {"A": 1}`: true, `"env": ["A"]`: false, `"colour": "green"`: false,
		`"fit": {"tolerance": "10%"}`: true, `"fit": {"tolerance": 0.1}`: true, `"fit": {"tolerance": 7}`: false,
		`"volume": {"source": "a"}`: false, `"volume": [{"source": "aa", "target": "/b"}]`: true,
		`"ssh": {"port": "auto"}`: true, `"ssh": {"port": 70000}`: false,
		`"lifecycle": {"ignore_changes": "all"}`: true, `"lifecycle": {"ignore_changes": ["env"]}`: true,
	} {
		if problem := accept(t, schema, schema, fmt.Sprintf(session, given)); (problem == "") != ok {
			t.Errorf("%s: %q", given, problem)
		}
	}
	for text, ok := range map[string]bool{
		`{"locals": {"anything": 1}}`: true, `{"session": {"worker": {}}}`: false, `{"session": {"worker": {"fraction": 0.5}}}`: true, `{"session": {"worker": {"fraction": 0.5, "target": "2060"}}}`: false,
		`{"sesion": {}}`: false,
		`{"target": {"mine": {"base": "3090", "vram": "20GiB"}}}`: true, `{"target": {"mine": {"vram": "20GiB"}}}`: false, `{"target": {"mine": {` + wholeTarget + `}}}`: true, `{"target": {"mine": {"base": 1, ` + wholeTarget + `, "colour": 1}}}`: false,
		`{"session": [{"a": {"target": "2060"}}, {"b": [{"target": "3090"}]}]}`: true, `{"//": "a note"}`: true,
	} {
		if problem := accept(t, schema, schema, text); (problem == "") != ok {
			t.Errorf("%s: %q", text, problem)
		}
	}
}

const wholeTarget = `"name": "NVIDIA Lab Card", "vram": "20GiB", "compute_capability": "8.6", "sms": 72, "boost_mhz": 1500, "bandwidth_gbs": 760, "bus_bits": 320, "l2_mib": 5, "power_w": 300, "pcie_generation": 4`

// accept validates a document with the part of JSON Schema that JSONSchema uses. It returns "" for a valid document.
func accept(t *testing.T, root, schema map[string]any, text string) string {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return fits(root, schema, document)
}

func fits(root, schema map[string]any, v any) string {
	if schema["$ref"] != nil {
		schema = root["$defs"].(map[string]any)["expression"].(map[string]any)
	}
	if choices, ok := schema["anyOf"].([]any); ok && schema["properties"] == nil {
		var problems []string
		for _, c := range choices {
			problem := fits(root, c.(map[string]any), v)
			if problem == "" {
				return ""
			}
			problems = append(problems, problem)
		}
		return strings.Join(problems, "; or ")
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Sprintf("%v is none of %v", v, words)
	}
	if only, ok := schema["const"]; ok && only != v {
		return fmt.Sprintf("%v is not %v", v, only)
	}
	if !hasType(schema["type"], v) {
		return fmt.Sprintf("%v is no %v", v, schema["type"])
	}
	switch v := v.(type) {
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			return fmt.Sprintf("%q does not match %s", v, pattern)
		}
	case float64:
		least, bounded := schema["minimum"].(float64)
		if bounded && (v < least || v > schema["maximum"].(float64)) {
			return fmt.Sprintf("%v is out of bounds", v)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, one := range v {
			if problem := fits(root, items, one); problem != "" {
				return problem
			}
		}
	case map[string]any:
		return fitsObject(root, schema, v)
	}
	return ""
}

func fitsObject(root, schema, v map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	for name, one := range v {
		inner, known := properties[name].(map[string]any)
		if !known {
			switch more := schema["additionalProperties"].(type) {
			case bool:
				if !more {
					return "unknown: " + name
				}
			case map[string]any:
				inner = more
			}
		}
		if problem := fits(root, inner, one); problem != "" {
			return name + ": " + problem
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, there := v[name.(string)]; !there {
			return fmt.Sprintf("%v is missing", name)
		}
	}
	for _, choice := range []string{"oneOf", "anyOf"} {
		ways, several := schema[choice].([]any)
		valid := slices.DeleteFunc(slices.Clone(ways), func(way any) bool {
			return fitsObject(root, map[string]any{"additionalProperties": map[string]any{}, "required": way.(map[string]any)["required"]}, v) != ""
		})
		if several && (len(valid) == 0 || choice == "oneOf" && len(valid) > 1) {
			return fmt.Sprintf("%d of %v", len(valid), ways)
		}
	}
	return ""
}

func hasType(wanted, v any) bool {
	if several, ok := wanted.([]any); ok {
		return slices.ContainsFunc(several, func(one any) bool { return hasType(one, v) })
	}
	switch n, isNumber := v.(float64); wanted {
	case nil:
		return true
	case "integer":
		return isNumber && n == math.Trunc(n)
	case "number":
		return isNumber
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "object":
		_, ok := v.(map[string]any)
		return ok
	}
	return false
}
