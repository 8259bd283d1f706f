// Package account makes the session's user known in the container. It edits the account files itself, because an
// image may lack useradd or any other program.
package account

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cosplay/internal/initd"
)

// Files are the account files of an image; nil for a missing file.
type Files struct {
	Passwd, Group, Shadow []byte
}

// Account is the session's user in the container.
type Account struct {
	Name   string
	UID    uint32
	GID    uint32
	Groups []uint32 // all of them, GID first
	Home   string
	Shell  string // "" if the image has none
}

// noShell is the shell in /etc/passwd if the image has none; an empty field would mean /bin/sh.
const noShell = "/sbin/nologin"

// Fields of the lines of passwd and group.
const (
	fieldName    = 0
	fieldID      = 2 // uid in passwd, gid in group
	fieldGID     = 3 // passwd
	fieldMembers = 3 // group
	fieldGecos   = 4 // passwd
	fieldHome    = 5 // passwd
	fieldShell   = 6 // passwd
)

// Enrol adds the user to the files, so that the user's name maps to the uid, the uid to the name, and likewise for
// the group. Other lines stay: another name with the same uid becomes a second name for it. The notes state conflicts
// with the image. Enrolling again changes nothing.
func Enrol(files Files, u initd.User, shell string) (Files, Account, []string) {
	var notes []string
	if files.Passwd == nil {
		notes = append(notes, "the image has no /etc/passwd; made one")
		files.Passwd = rootLine(u, shell)
	}
	if files.Group == nil {
		files.Group = []byte("root:x:0:\n")
	}
	passwd, group, shadow := parse(files.Passwd), parse(files.Group), parse(files.Shadow)

	notes = slices.Concat(notes, passwd.clashes("uid", u.Name, u.UID), group.clashes("gid", u.Group, u.GID))
	secret := "x"
	if files.Shadow == nil {
		secret = "*"
	}
	passwd.place(u.Name, u.UID, func(old []string) []string {
		return []string{u.Name, secret, decimal(u.UID), decimal(u.GID), at(old, fieldGecos), u.Home, cmp.Or(shell, noShell)}
	})
	group.place(u.Group, u.GID, func(old []string) []string {
		return []string{u.Group, "x", decimal(u.GID), at(old, fieldMembers)}
	})
	out := Files{Passwd: passwd.bytes(), Group: group.bytes()}
	if files.Shadow != nil {
		shadow.unexpire(u.Name)
		out.Shadow = shadow.bytes()
	}
	return out, Account{Name: u.Name, UID: u.UID, GID: u.GID, Groups: group.of(u.Name, u.GID), Home: u.Home, Shell: shell}, notes
}

// In finds an account by NAME or UID, with :GROUP or :GID, and the shell that passwd has for it. A number needs no line
// in the files.
func In(files Files, ref string) (a Account, shell string, err error) {
	user, group, grouped := strings.Cut(ref, ":")
	passwd, groups := parse(files.Passwd), parse(files.Group)
	a = Account{Name: user, Home: "/"}
	i := passwd.find(fieldName, user)
	if i < 0 {
		i = passwd.find(fieldID, user)
	}
	uid := user
	if i >= 0 {
		line := (*passwd)[i]
		a.Name, a.Home, uid, shell = line[fieldName], cmp.Or(at(line, fieldHome), "/"), at(line, fieldID), at(line, fieldShell)
		a.GID, _ = number(at(line, fieldGID)) // without one: root's, as Docker has it
	}
	if a.UID, err = number(uid); err != nil {
		return a, "", fmt.Errorf("the session has no user %s; name one of its /etc/passwd, or a uid", user)
	}
	a.Groups = groups.of(a.Name, a.GID)
	if !grouped {
		return a, shell, nil
	}
	gid := group
	if i := groups.find(fieldName, group); i >= 0 {
		gid = at((*groups)[i], fieldID)
	}
	if a.GID, err = number(gid); err != nil {
		return a, "", fmt.Errorf("the session has no group %s; name one of its /etc/group, or a gid", group)
	}
	a.Groups = []uint32{a.GID}
	return a, shell, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// rootLine starts a new passwd file, so that root's files have an owner with a name.
func rootLine(u initd.User, shell string) []byte {
	if u.UID == 0 {
		return nil
	}
	return []byte("root:*:0:0:root:/root:" + cmp.Or(shell, noShell) + "\n")
}

// table is a file of lines with fields between colons. Other lines (comments, NIS) are kept as one field.
type table [][]string

func parse(data []byte) *table {
	t := table{}
	for line := range strings.Lines(string(data)) {
		t = append(t, strings.Split(strings.TrimSuffix(line, "\n"), ":"))
	}
	return &t
}

func (t *table) bytes() []byte {
	var b strings.Builder
	for _, line := range *t {
		b.WriteString(strings.Join(line, ":") + "\n")
	}
	return []byte(b.String())
}

func (t *table) find(field int, value string) int {
	return slices.IndexFunc(*t, func(line []string) bool { return at(line, field) == value })
}

// place writes one line for the name: in its present position, or before the first other line with that id, because
// the first one determines the id's name.
func (t *table) place(name string, id uint32, line func(old []string) []string) {
	spot := t.find(fieldName, name)
	var old []string
	if spot >= 0 {
		old = (*t)[spot]
	}
	*t = slices.DeleteFunc(*t, func(l []string) bool { return l[fieldName] == name })
	first := t.find(fieldID, decimal(id))
	switch {
	case spot < 0 && first < 0:
		spot = len(*t)
	case spot < 0 || (first >= 0 && first < spot):
		spot = first
	}
	*t = slices.Insert(*t, spot, line(old))
}

// clashes reports lines of the image that conflict with the name or the id.
func (t *table) clashes(kind, name string, id uint32) []string {
	var notes []string
	if i := t.find(fieldName, name); i >= 0 && at((*t)[i], fieldID) != decimal(id) {
		notes = append(notes, fmt.Sprintf("%s had %s %s in the image; it is %d now", name, kind, at((*t)[i], fieldID), id))
	}
	if i := t.find(fieldID, decimal(id)); i >= 0 && (*t)[i][fieldName] != name {
		notes = append(notes, fmt.Sprintf("%s %d was %s in the image; %s comes first now", kind, id, (*t)[i][fieldName], name))
	}
	return notes
}

func (t *table) of(name string, gid uint32) []uint32 {
	groups := []uint32{gid}
	for _, line := range *t {
		id, err := strconv.ParseUint(at(line, fieldID), 10, 32)
		member := slices.Contains(strings.Split(at(line, fieldMembers), ","), name)
		if err == nil && member && !slices.Contains(groups, uint32(id)) {
			groups = append(groups, uint32(id))
		}
	}
	return groups
}

// unexpire gives the user a shadow line without dates: sudo refuses a user without a line or with an expired one. A
// password of the image stays; an empty password is replaced.
func (t *table) unexpire(name string) {
	i := t.find(fieldName, name)
	if i < 0 {
		i = len(*t)
		*t = append(*t, nil)
	}
	(*t)[i] = []string{name, cmp.Or(at((*t)[i], 1), "*"), "", "", "", "", "", "", ""}
}

func at(line []string, field int) string {
	if field < len(line) {
		return line[field]
	}
	return ""
}

func decimal(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
