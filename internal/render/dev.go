package render

import (
	"cosplay/internal/public"
	"cosplay/internal/terminal"
)

// DevView is where an editor works in a session.
type DevView struct {
	public.Dev
	Is    string   // what the session is, in words
	Flags []string // global flags of the command, for suggestions
	Name  string   // of the session, as people type it
}

func (v DevView) data() any { return v.Dev }

func (v DevView) draw(p *page) {
	p.say(v.Is + given(len(v.Folder), " The workspace is "+together(terminal.ShellWord(v.Folder))+"."))
	if v.SSH != nil && !v.SSHKnown {
		p.gap()
		p.commands("Once, as the first line of ~/.ssh/config:", []string{"Include cosplay"})
		p.commands("After each apply, because ports may change:", []string{suggest("ssh-config", v.Flags) + " > ~/.ssh/cosplay"})
	}
	for _, e := range v.Editors {
		p.gap()
		title := e.Name + given(len(e.Needs), " (needs "+e.Needs+")") + ":"
		switch {
		case e.Link != "":
			p.commands(title, []string{e.Link})
		case len(e.Command) > 0:
			p.commands(title, []string{terminal.ShellWords(e.Command)})
		default:
			p.say(e.Name + " needs " + e.Needs + ".")
		}
		if len(e.Settings) > 0 {
			p.commands("After the first attach, run Dev Containers: Open Named Configuration File, and write:", []string{quotedJSON(e.Settings)})
		}
		if e.Note != "" {
			p.say(e.Note)
		}
	}
	if len(v.Editors[0].Command) > 0 {
		p.gap()
		p.next(suggest("dev", append([]string{"--open", "code"}, append(v.Flags, v.Name)...)))
	}
}
