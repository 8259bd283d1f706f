package agent

import (
	"cmp"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Policy is what the admin of a host permits its users. The first rule that names a GPU and a user applies. A GPU that a
// rule names for users or groups is theirs alone: a later * does not mean it.
type Policy struct {
	path  string
	rules []rule
	open  bool // there is no file
}

// rule is one line of the policy.
type rule struct {
	line          int
	text          string
	gpu           string // UUID; "*" for each
	users, groups []string
	manage        []string // words of permissions; nil permits everything
	slices        int      // a user's at once on the GPUs of the rule; unbounded if there is no bound

	maxTTL, defaultTTL resource.Seconds // of a session; 0 where the rule does not say
}

const unbounded = -1

// Subject is a user, as the rules name users.
type Subject struct {
	Name   string
	UID    int
	Groups []string // names and GIDs
	Err    error    // why the groups are not known
}

// SubjectOf is the user with a UID.
func SubjectOf(uid int) Subject {
	s := Subject{Name: fmt.Sprintf("uid %d", uid), UID: uid}
	account, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		s.Err = err
		return s
	}
	s.Name = account.Username
	ids, err := account.GroupIds()
	s.Err = err
	for _, id := range ids {
		s.Groups = append(s.Groups, id)
		if group, err := user.LookupGroupId(id); err == nil {
			s.Groups = append(s.Groups, group.Name)
		}
	}
	return s
}

// PolicyOf is the policy that the admin of a host has written. The agent of root enforces it; others read it to know early.
func PolicyOf(f resource.AdminFile) (Policy, error) {
	p := Policy{path: f.Path, open: f.Path == ""}
	wrong := func(err error) error {
		return prose.Advice{What: fmt.Sprintf("the rules for the GPUs of this host cannot be relied on: %v", err), Fix: "let an admin correct " + f.Path, Cause: err}
	}
	if err := unread(f); err != nil {
		return p, wrong(err)
	}
	for _, l := range f.Lines {
		r, err := parseRule(l)
		if err != nil {
			return p, wrong(fmt.Errorf("%s:%d: %w", f.Path, l.Number, err))
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

func parseRule(l resource.AdminLine) (rule, error) {
	r := rule{line: l.Number, text: strings.Join(l.Words, " "), gpu: l.Words[0], slices: unbounded}
	for _, word := range l.Words[1:] {
		key, value, _ := strings.Cut(word, "=")
		values := slices.DeleteFunc(strings.Split(value, ","), func(v string) bool { return v == "" })
		switch {
		case !slices.Contains([]string{"user", "group", "manage", "slices", "max-ttl", "default-ttl"}, key):
			return r, fmt.Errorf("a rule has no %q: write user=NAME, group=NAME, manage=WORD, slices=NUMBER, max-ttl=TIME or default-ttl=TIME after the UUID", word)
		case strings.HasSuffix(key, "-ttl"):
			if err := r.limit(key, value); err != nil {
				return r, err
			}
		case key == "slices":
			count, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return r, fmt.Errorf("%q is not a number of slices, like slices=2", word)
			}
			r.slices = int(count)
		case len(values) == 0:
			return r, fmt.Errorf("%q names nothing: write %[2]s=NAME, or %[2]s=NAME,NAME", word, key)
		case key == "user":
			r.users = append(r.users, values...)
		case key == "group":
			r.groups = append(r.groups, values...)
		default:
			if err := r.permit(values); err != nil {
				return r, err
			}
		}
	}
	if r.maxTTL > 0 && r.defaultTTL > r.maxTTL {
		return r, fmt.Errorf("default-ttl=%s is longer than max-ttl=%s", r.defaultTTL, r.maxTTL)
	}
	return r, nil
}

// permit adds words of "manage"; none stands alone and permits nothing.
func (r *rule) permit(words []string) error {
	known := append([]string{resource.SlicesWord}, prose.Each(resource.AllSettings[:], resource.Setting.ManageWord)...)
	for _, word := range words {
		if word != "none" && !slices.Contains(known, word) || word == "none" && len(words) > 1 {
			return fmt.Errorf("manage=%s: write none, or some of %s", strings.Join(words, ","), strings.Join(known, ","))
		}
	}
	r.manage = append(r.manage, words...)
	return nil
}

// reserves reports whether a rule gives its GPU to some users only.
func (r rule) reserves() bool {
	return r.gpu != "*" && len(r.users)+len(r.groups) > 0 && !slices.Contains(r.manage, "none")
}

// governs is the rule that applies to a user and a GPU or, if none does, the one that reserves the GPU for others.
func (p Policy) governs(who Subject, gpu string) (reserved rule, found bool, err error) {
	for _, r := range p.rules {
		if r.gpu != gpu && (r.gpu != "*" || reserved.reserves()) {
			continue
		}
		if len(r.groups) > 0 && who.Err != nil {
			return r, false, fmt.Errorf("%s names groups, and those of %s are not known: %w", p.at(r), who.Name, who.Err)
		}
		all := len(r.users) == 0 && len(r.groups) == 0
		named := slices.Contains(r.users, who.Name) || slices.Contains(r.users, strconv.Itoa(who.UID))
		member := slices.ContainsFunc(r.groups, func(g string) bool { return slices.Contains(who.Groups, g) })
		if all || named || member {
			return r, true, nil
		}
		if r.reserves() {
			reserved = r
		}
	}
	return reserved, false, nil
}

func (p Policy) at(r rule) string { return fmt.Sprintf("%s:%d (%s)", p.path, r.line, r.text) }

// Wish is a change of a GPU that a user asks for.
type Wish struct {
	GPU     string            // UUID
	Setting *resource.Setting // nil for another change
	Slice   bool              // one more slice
	Whole   bool              // the GPU without MIG
	Before  map[string]int    // slices by GPU that the user gets before this one by the same plan or request
}

// Permit refuses what no rule permits. has counts the slices that the user has on a GPU, over all projects.
func (p Policy) Permit(who Subject, wish Wish, has map[string]int) error {
	if p.open {
		return nil
	}
	r, found, err := p.governs(who, wish.GPU)
	if err != nil {
		return err
	}
	if !found {
		what := fmt.Sprintf("no rule of %s permits %s to change %s", p.path, who.Name, wish.GPU)
		if r.reserves() {
			what += fmt.Sprintf(", which line %d (%s) reserves", r.line, r.text)
		}
		return prose.Advice{What: what, Fix: "leave it out of gpus in the host block, or ask the admin of the host for a rule"}
	}
	not := func(what, fix string) error {
		return prose.Advice{What: fmt.Sprintf("the rule %s does not permit %s %s", p.at(r), who.Name, what), Fix: fix + ", or ask the admin of the host"}
	}
	lacks := func(word string) bool { return r.manage != nil && !slices.Contains(r.manage, word) }
	switch {
	case wish.Setting != nil && lacks(wish.Setting.ManageWord()):
		return not(fmt.Sprintf("to change the %s of %s", wish.Setting.Words(), wish.GPU), fmt.Sprintf("leave %q out of manage in the host block", wish.Setting.ManageWord()))
	case wish.Slice && lacks(resource.SlicesWord):
		return not("to create slices on "+wish.GPU, `leave "slices" out of manage in the host block`)
	case wish.Whole && r.slices != unbounded:
		return not("a whole GPU, but "+prose.Count(r.slices, "slice"), "use a target that a slice fits")
	case !wish.Slice || r.slices == unbounded:
		return nil
	}
	now, before := p.under(r, who, has), p.under(r, who, wish.Before)
	switch what := "more than " + prose.Count(r.slices, "slice"); {
	case now+before < r.slices:
		return nil
	case before == 0:
		return not(fmt.Sprintf("%s, and %s has %d", what, who.Name, now), "destroy a session first")
	case now == 0:
		return not(fmt.Sprintf("%s, and this asks for %d or more", what, before+1), "write fewer sessions")
	default:
		return not(fmt.Sprintf("%s: %s has %d, and this asks for %d or more", what, who.Name, now, before+1), "write fewer sessions, or destroy one first")
	}
}

// under sums slices by GPU over the GPUs of a rule.
func (p Policy) under(r rule, who Subject, all map[string]int) (sum int) {
	for gpu, count := range all {
		if same, found, err := p.governs(who, gpu); err == nil && found && same.line == r.line {
			sum += count
		}
	}
	return sum
}

// Rule is the line that applies to a user and a GPU, "" without one; false without a policy.
func (p Policy) Rule(who Subject, gpu string) (line string, is bool) {
	if r, found, err := p.governs(who, gpu); err == nil && found {
		line = p.at(r)
	}
	return line, !p.open
}

// SlicesOf counts the slices of a user by GPU, over all projects.
func SlicesOf(pages []resource.Page, uid int) map[string]int {
	has := map[string]int{}
	for _, page := range pages {
		for _, h := range page.Holders {
			if h.UID != nil && *h.UID == uid {
				has[page.UUID] += len(h.Slices)
			}
		}
	}
	return has
}

// TTL is what the rules of a host say about the ttl of a session. cosplay keeps it as the user: the agent of root knows
// GPUs and slices, and no sessions.
type TTL struct {
	Max     resource.Seconds // the longest; 0 is any, and none
	Default resource.Seconds // of a session without one; 0 is none
	Rule    string           // that says so
}

// limit reads a word about the ttl of sessions.
func (r *rule) limit(key, value string) error {
	length, ok := resource.ParseSeconds(value)
	if !ok {
		return fmt.Errorf("%q is not a length of time, like %s=8h", key+"="+value, key)
	}
	if key == "max-ttl" {
		r.maxTTL = length
	} else {
		r.defaultTTL = length
	}
	return nil
}

// TTL is what applies to a session of a user on some GPUs: of several, the rule with the shortest times.
func (p Policy) TTL(who Subject, gpus []string) (ttl TTL, err error) {
	for _, gpu := range gpus {
		r, found, err := p.governs(who, gpu)
		if err != nil {
			return ttl, err
		}
		if before := ttl; found {
			ttl.Max, ttl.Default = shorter(ttl.Max, r.maxTTL), shorter(ttl.Default, cmp.Or(r.defaultTTL, r.maxTTL))
			if ttl != before {
				ttl.Rule = p.at(r)
			}
		}
	}
	return ttl, nil
}

// shorter is the shorter of two lengths of time, of which 0 is none.
func shorter(a, b resource.Seconds) resource.Seconds {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
