package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fences   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	paths    = regexp.MustCompile(`\bdocs/[a-z\d/.-]+\.(md|json|jsonl|svg)\b`)
)

// TestLinks: each relative link of a document leads to a file and to a heading that exist.
func TestLinks(t *testing.T) {
	for page, text := range documents(t) {
		for _, link := range links.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			target := link[1] + link[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path, heading, _ := strings.Cut(target, "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
			} else if heading != "" && !anchors(t, file)[heading] {
				t.Errorf("%s links to %s: the page has no such heading", page, target)
			}
		}
	}
}

// TestPages: docs/README.md lists each page.
func TestPages(t *testing.T) {
	folder := filepath.Join("..", "..", "docs")
	index := documents(t)[filepath.Join(folder, "README.md")]
	for page := range documents(t) {
		name, err := filepath.Rel(folder, page)
		if err != nil || strings.HasPrefix(name, "..") || name == "README.md" {
			continue
		}
		listed := strings.Contains(index, "]("+name+")")
		if dir := filepath.Dir(name); strings.HasPrefix(dir, "developers/") {
			listed = strings.Contains(index, "]("+dir+"/") || strings.Contains(index, "]("+dir+")")
		}
		if !listed {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// TestPathsOfDocuments: the documents that the code, scripts and pages name exist.
func TestPathsOfDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, folder := range []string{"cmd", "internal", "driver", "scripts", "catalog", "Makefile", "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "functions.txt") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, named := range paths.FindAllString(string(data), -1) {
				if _, missing := os.Stat(filepath.Join(root, named)); missing != nil {
					t.Errorf("%s names %s, which does not exist", path, named)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// documents are the texts of all documents of the repository, by path.
func documents(t *testing.T) map[string]string {
	root := filepath.Join("..", "..")
	all, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// anchors are the names by which links reach the headings of a page.
func anchors(t *testing.T, path string) map[string]bool {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, heading := range headings.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
		anchor := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}
