package prose_test

import (
	"testing"

	"cosplay/internal/prose"
)

func TestWords(t *testing.T) {
	three := []string{"a", "b", "c"}
	for got, want := range map[string]string{
		prose.Capital(""):                                  "",
		prose.Capital("éclair"):                            "Éclair",
		prose.Sentence(" it failed \n"):                    "It failed.",
		prose.Sentence("did it?"):                          "Did it?",
		prose.Stop("none is left."):                        "none is left.",
		prose.Count(1, "GPU"):                              "1 GPU",
		prose.Count(0, "process"):                          "0 processes",
		prose.Plural(2, "is", "are"):                       "2 are",
		prose.And(nil):                                     "",
		prose.And(three[:1]):                               "a",
		prose.Or(three[:2]):                                "a or b",
		prose.And(three):                                   "a, b and c",
		prose.And(prose.Few(three, 1)):                     "a and 2 more",
		prose.And(prose.Few(three, 3)):                     "a, b and c",
		prose.Or(prose.Quoted(three[:2])):                  `"a" or "b"`,
		prose.And(prose.Numbered([]string{"x", "y", "x"})): "2 x x and 1 x y",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
