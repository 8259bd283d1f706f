package render

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cosplay/internal/public"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// DevicesView are sessions as CDI devices.
type DevicesView []Offered

// Offered is a session with its device.
type Offered struct {
	Session resource.Session
	resource.Offer
}

func (v DevicesView) draw(p *page) {
	if len(v) == 0 {
		p.flow(0, 0, text(`No session is a CDI device. Write runtime = "cdi" in the host block, then cosplay apply.`))
		return
	}
	t := &table{columns: textColumns("SESSION", "TARGET", "DEVICE")}
	for _, o := range v {
		t.texts(o.Session.Address.Short(), o.Session.Target.ShortName(), o.Device)
	}
	p.table(t)
	p.next("docker run --device " + v[0].Device + " IMAGE")
}

func (v DevicesView) data() any {
	files := func(all []resource.Mount) []public.Mount {
		return each(all, func(m resource.Mount) public.Mount { return public.Mount(m) })
	}
	return public.Devices{Format: public.V1, Devices: each(v, func(o Offered) public.Device {
		return public.Device{Session: o.Session.Address.String(), Device: o.Device, Target: o.Session.Target.Key,
			Specification: o.Specification, Env: o.Env, Nodes: files(o.Nodes), Mounts: files(o.Mounts)}
	})}
}

// DeviceLines are the lines by which a tool gives containers the devices of sessions, by the tool's name.
var DeviceLines = map[string]func(io.Writer, DevicesView){
	"compose": func(w io.Writer, v DevicesView) {
		fmt.Fprintln(w, "services:")
		for _, o := range v {
			fmt.Fprintf(w, "  %s:\n    devices:\n      - %s\n", serviceName(o.Session.Address.Short()), o.Device)
		}
	},
	"devcontainer": func(w io.Writer, v DevicesView) {
		for _, o := range v {
			fmt.Fprintf(w, "\"runArgs\": [\"--device\", %s] // %s\n", quotedJSON(o.Device), o.Session.Address.Short())
		}
	},
	"podman": func(w io.Writer, v DevicesView) {
		for _, o := range v {
			fmt.Fprintf(w, "podman run --rm --device %s IMAGE\n", o.Device)
		}
	},
	"apptainer": func(w io.Writer, v DevicesView) {
		for _, o := range v {
			fmt.Fprintf(w, "apptainer exec%s IMAGE COMMAND\n", strings.Join(apptainerOptions(o), " \\\n  "))
		}
	},
}

// serviceName is a name in the characters that compose permits.
func serviceName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, name)
}

// apptainerOptions are the options that do what the device does: Apptainer starts containers as their user, and reads
// no devices of CDI.
func apptainerOptions(o Offered) []string {
	options := []string{""}
	for _, m := range slices.Concat(o.Nodes, o.Mounts) {
		if path.Dir(m.Container) == "/dev" || strings.HasPrefix(m.Container, "/dev/") {
			continue // it shows all device nodes
		}
		access := ":ro"
		if m.Writable {
			access = ""
		}
		options = append(options, "--bind "+terminal.ShellWord(m.Host+":"+m.Container+access))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		options = append(options, "--env "+terminal.ShellWord(name+"="+o.Env[name]))
	}
	return options
}

func quotedJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string cannot fail
	}
	return string(b)
}
