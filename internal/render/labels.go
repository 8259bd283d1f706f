package render

import (
	"fmt"
	"slices"
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
			next[a.Name] = max(next[a.Name], a.Key.Index+1)
		case resource.ByEach:
			l.each[a] = fmt.Sprintf("%s%d", l.prefix[a.Name], next[a.Name])
			next[a.Name]++
		case resource.Single:
		}
	}
	return l
}

// freePrefix finds letters that no other block has.
func freePrefix(name string, taken map[string]bool) string {
	var letters []rune
	for _, r := range name {
		if unicode.IsLetter(r) {
			letters = append(letters, unicode.ToLower(r))
		}
	}
	if len(letters) == 0 {
		letters = []rune{'s'} // a name of underscores
	}
	for _, second := range append([]rune{0}, append(letters[1:], []rune("abcdefghijklmnopqrstuvwxyz")...)...) {
		prefix := string(letters[0])
		if second != 0 {
			prefix += string(second)
		}
		if !taken[prefix] {
			return prefix
		}
	}
	for n := 0; ; n++ { // more than 26 blocks that begin alike
		if prefix := string(letters[0]) + spelled(n); !taken[prefix] {
			return prefix
		}
	}
}

// spelled is a number in letters, two at least: "aa", "ab" and so on to "zz", "baa".
func spelled(n int) string {
	var letters string
	for ; n > 0 || len(letters) < 2; n /= 26 {
		letters = string(rune('a'+n%26)) + letters
	}
	return letters
}

func (l labels) of(a resource.Address) string {
	switch a.Key.Kind {
	case resource.ByCount:
		return fmt.Sprintf("%s%d", l.prefix[a.Name], a.Key.Index)
	case resource.ByEach:
		return l.each[a]
	default:
		return l.prefix[a.Name]
	}
}

// legend explains the labels of some sessions; those of a count share a line.
func (l labels) legend(addresses []resource.Address) []string {
	var all []string
	for _, a := range addresses {
		entry := l.of(a) + " = " + a.String()
		if a.Key.Kind == resource.ByCount {
			entry = l.prefix[a.Name] + " = session." + a.Name
		}
		if !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}
