package render

import (
	"fmt"
	"io"
	"strings"

	"cosplay/internal/diff"
	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/words"
)

// Sessions shows the sessions alone.
func Sessions(w io.Writer, s Style, v StatusView) {
	p, f := newPage(s), newFleet(v)
	if len(v.Prior.Sessions) == 0 {
		p.flow(0, 0, text("There is no session. cosplay apply creates those of the configuration."))
	}
	p.sessionTable(f)
	p.flush(w)
}

// sessionTable lists the sessions of the state with how they are.
func (p *page) sessionTable(v fleet) {
	t := &table{columns: []column{{title: "SESSION"}, {title: "TARGET"}, {title: "GPU"}, {title: "SLICE"}, {title: "VRAM", right: true}, {title: "PEAK", right: true}, {title: "STATE"}, {title: "SSH"}, {prose: true}}, spare: []string{"VRAM"}}
	for _, s := range v.Prior.Sessions {
		state := v.sessionState(s)
		t.add(text(s.Address.Short()), text(s.Target.ShortName()), text(strings.TrimPrefix(words.GPU(v.Live, s.Slice.Host, s.Slice.GPU), "GPU ")), text(s.Slice.String()),
			text(mib(s.Target.MemoryMiB)), peakCell(v.Used[s.Address]), stateCell(state), v.sshCell(s), p.driftCell(state, v.drift[s.Address]))
	}
	p.table(t)
}

// peakCell is empty where nothing was used, so that there is no column of it before any session has used anything.
func peakCell(use resource.Use) line {
	switch {
	case use.RanOut() > 0:
		return inked(removed, "ran out")
	case use.PeakMiB > 0:
		return text(mib(use.PeakMiB))
	}
	return nil
}

// sshCell is where one logs in; empty where no session has ssh, so that there is no column of it.
func (f fleet) sshCell(s resource.PriorSession) line {
	c, there := f.Live.Body(s.Slice.Host, s.Runtime, s.ID)
	if !there {
		c.State = ""
	}
	switch at := loginOf(s.Session, &c); {
	case at != nil:
		return text(endpoint(at.Host, at.Port))
	case f.ssh:
		return inked(dim, "-")
	}
	return nil
}

func stateCell(state string) line {
	switch state {
	case resource.Running:
		return inked(added, state)
	case resource.Stopped, "unfinished":
		return inked(strong, state)
	}
	return inked(removed, state)
}

// driftCell marks a session that drifted, with words where its state has none. What is informational has no mark.
func (p *page) driftCell(state string, drift []diff.Drift) line {
	var things, information []string
	for _, d := range drift {
		switch {
		case d.Class == diff.ImageMoved:
			information = append(information, "image moved")
		case d.Class == diff.DisguiseOutdated:
			information = append(information, "old "+words.Drifted(d))
		case d.Class == diff.SecretsInEnv:
			information = append(information, "open secrets")
		case d.Class == diff.BodyLimited:
			information = append(information, words.Drifted(d)+" "+words.Value(d.To, resource.Live{}))
		case d.Class == diff.BodyReplaced:
			things = append(things, words.Drifted(d)+" replaced")
		default:
			things = append(things, words.Drifted(d)+" "+words.Value(d.To, resource.Live{}))
		}
	}
	mark := p.pick("← drift", "<- drift")
	switch {
	case len(things) == 0:
		return inked(dim, strings.Join(information, ", "))
	case state != resource.Running:
		return inked(drifted, mark)
	}
	return join(inked(drifted, mark+":"), text(" "+strings.Join(things, ", ")))
}

// SSHConfig writes Host blocks for ~/.ssh/config.
func SSHConfig(w io.Writer, hosts []public.SSHHost) {
	for i, h := range hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s\nHost %s\n", h.Session, h.Name)
		for _, o := range h.Options {
			fmt.Fprintf(w, "  %s %s\n", o.Name, o.Value)
		}
	}
}

// SSHConfigJSON is the same as JSON.
func SSHConfigJSON(w io.Writer, hosts []public.SSHHost) error {
	return JSON(w, public.SSHConfig{Format: public.V1, Hosts: hosts})
}
