package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"cosplay/internal/resource"
)

// labels are the short names of sessions in slot maps: w0 for session.worker[0].
type labels struct {
	prefix map[string]string // by block
	each   map[resource.Address]string
}

// newLabels gives each block its own prefix: the first letter of its name, with a second one where
// several blocks begin alike.
func newLabels(addresses []resource.Address) labels {
	addresses = slices.Clone(addresses)
	slices.SortFunc(addresses, resource.Address.Compare)
	l := labels{prefix: map[string]string{}, each: map[resource.Address]string{}}
	next := map[string]int{}
	taken := map[string]bool{}
	for _, a := range slices.Compact(addresses) {
		if l.prefix[a.Name] == "" {
			l.prefix[a.Name] = freePrefix(a.Name, taken)
			taken[l.prefix[a.Name]] = true
		}
		switch a.Key.Kind {
		case resource.ByCount:
			l.each[a] = fmt.Sprintf("%s%d", l.prefix[a.Name], a.Key.Index)
			next[a.Name] = max(next[a.Name], a.Key.Index+1)
		case resource.ByEach:
			l.each[a] = fmt.Sprintf("%s%d", l.prefix[a.Name], next[a.Name])
			next[a.Name]++
		case resource.Single:
			l.each[a] = l.prefix[a.Name]
		}
	}
	return l
}

// freePrefix returns letters that no other block has.
func freePrefix(name string, taken map[string]bool) string {
	letters := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name))
	if len(letters) == 0 {
		letters = []rune{'s'} // a name of underscores
	}
	for _, more := range append([]string{""}, strings.Split(string(letters[1:]), "")...) {
		if prefix := string(letters[0]) + more; !taken[prefix] {
			return prefix
		}
	}
	for n := 0; ; n++ {
		if prefix := string(letters[0]) + spelled(n); !taken[prefix] {
			return prefix
		}
	}
}

// spelled is a number in letters: a to z, aa to zz, and so on.
func spelled(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return spelled(n/26-1) + string(rune('a'+n%26))
}

func (l labels) of(a resource.Address) string { return l.each[a] }

// legend explains the labels of some sessions; those of a count share a line.
func (l labels) legend(addresses []resource.Address) []string {
	var all []string
	for _, a := range addresses {
		entry := l.prefix[a.Name] + " = session." + a.Name
		if a.Key.Kind != resource.ByCount {
			entry = l.of(a) + " = " + a.String()
		}
		if !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}
