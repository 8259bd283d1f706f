package kubernetes

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// fields are an object in the order in which people write it. A nil value is left out.
type fields []field

type field struct {
	key   string
	value any // a text, a whole number, fields, or a list of these
}

// MarshalYAML keeps the order.
func (f fields) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, one := range f {
		var value yaml.Node
		if one.value == nil {
			continue
		}
		if err := value.Encode(one.value); err != nil {
			return nil, err
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: one.key}, &value)
	}
	return node, nil
}

// text is a text that no reader of YAML takes for something else, whichever version of YAML it reads.
type text string

// MarshalYAML quotes the text.
func (t text) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(t)}, nil
}

// document writes an object.
func document(of fields) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(of); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out.Bytes(), e.Close()
}
