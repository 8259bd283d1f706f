package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unclear are phrases that readers could not parse, with what to write instead. They are
// regular expressions for whole words.
var unclear = map[string]string{
	`(is|are|was|were) told`:          "is reported, is printed",
	`anew`:                            "again, recreated",
	`(mend|mends|mended)`:             "fix, repair",
	`finds? no (place|room)`:          "does not fit",
	`(takes?|taken|took) in hand`:     "acquires",
	`(is|are|to|cannot) be had`:       "is available",
	`lies open`:                       "is readable by",
	`(somebody|nobody|everybody)`:     "name the user or the process",
	`whoever`:                         "name the user or the process",
	`in the way`:                      "blocks",
	`strays`:                          "leftovers",
	`(of (its|their) own|of ours)`:    "its, cosplay's",
	`cut[ -]off`:                      "interrupted",
	`passes? for`:                     "presents, acts as",
	`(taken|takes?|took) down`:        "is removed",
	`(put|puts) (it|them) back`:       "restores",
	`lets? go of`:                     "releases, closes",
	`what (there is|is there)`:        "status, all objects",
	`as far as one can tell`:          "as far as cosplay can check",
	`(is|are|was|has|have|been) gone`: "is removed, is lost",
}

// notWords are parts of lines that are not a sentence: keys of formats, and the user named nobody.
var notWords = regexp.MustCompile(`json:"[^"]*"|"told"|"nobody"|(-u|-l|USER|/bin/sh) nobody`)

// TestWords: no unclear phrase is in a text that a person reads: the output, documents,
// comments, and the tests. Data of other projects is left out.
func TestWords(t *testing.T) {
	root := filepath.Join("..", "..")
	var all []string
	for phrase := range unclear {
		all = append(all, phrase)
	}
	slices.Sort(all)
	wrong := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	ends := []string{".go", ".c", ".h", ".py", ".md", ".golden", ".tmpl", ".txt", ".txtar", ".hcl", ".yml", "Makefile", "Dockerfile"}
	skip := []string{"internal/archtest/words_test.go", "internal/config/testdata/functions.txt"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		text := filepath.Dir(name) == "scripts" || slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || name == "bin" || name == "dist"):
			return fs.SkipDir
		case entry.IsDir() || !text || slices.Contains(skip, name):
			return nil
		}
		data, err := os.ReadFile(path)
		for i, line := range strings.Split(string(data), "\n") {
			found := wrong.FindString(strings.Join(strings.Fields(notWords.ReplaceAllString(line, "")), " "))
			for phrase, instead := range unclear {
				if found != "" && regexp.MustCompile(`(?i)^`+phrase+`$`).MatchString(found) {
					t.Errorf("%s:%d: %q is unclear; write: %s", name, i+1, found, instead)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
