package diff

import (
	"encoding/json"
	"fmt"
	"testing"

	"cosplay/internal/resource"
)

func TestOutputs(t *testing.T) {
	plain := func(name, value string) resource.Output {
		return resource.Output{Name: name, Value: json.RawMessage(value)}
	}
	sealed := func(name, seal string) resource.Output {
		return resource.Output{Name: name, Sensitive: true, Sealed: seal}
	}
	was := []resource.Output{plain("a", `{"x": 1}`), plain("b", `1`), plain("former", `1`), sealed("s", "1"), sealed("t", "1"), plain("u", `1`), plain("hid", `"old"`)}
	next := []resource.Output{plain("a", `{"x":1}`), plain("b", `2`), plain("new", `3`), sealed("s", "1"), sealed("t", "2"), sealed("hid", "3")}
	unknown := []resource.Output{{Name: "later", Sensitive: true}, {Name: "u"}}

	for changes, want := range map[bool]string{
		false: "b update 1>2, former delete 1>, hid update secret >, new create >3, t update secret >, ",
		true:  "b update 1>2, former delete 1>, hid update secret >, later create secret >, new create >3, t update secret >, u update 1>, ",
	} {
		got := ""
		for _, c := range Outputs(was, next, unknown, changes) {
			got += fmt.Sprintf("%s %s ", c.Name, c.Action)
			if c.Sensitive {
				got += "secret "
			}
			got += fmt.Sprintf("%s>%s, ", c.Before, c.After)
		}
		if got != want {
			t.Errorf("with changes %t:\n got %s\nwant %s", changes, got, want)
		}
	}
}
