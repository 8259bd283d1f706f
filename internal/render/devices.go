package render

import (
	"encoding/csv"
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
			env := maps.Clone(o.Env) // docker exec, which starts every program there, gives the device's variables to none
			delete(env, resource.DeviceDigest)
			fmt.Fprintf(w, "\"runArgs\": [\"--device\", %s], \"containerEnv\": %s // %s\n", quotedJSON(o.Device), quotedJSON(env), o.Session.Address.Short())
		}
	},
	"podman": func(w io.Writer, v DevicesView) {
		for _, o := range v {
			fmt.Fprintf(w, "podman run --rm --device %s IMAGE\n", o.Device)
		}
	},
	"apptainer": func(w io.Writer, v DevicesView) {
		for _, o := range v {
			fmt.Fprintf(w, "apptainer exec %s \\\n  IMAGE COMMAND\n", strings.Join(apptainerOptions(o), " \\\n  "))
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
	options := []string{"--no-eval"} // or it expands the values of variables as a shell does
	for _, m := range slices.Concat(o.Nodes, o.Mounts) {
		if path.Dir(m.Container) == "/dev" || strings.HasPrefix(m.Container, "/dev/") {
			continue // it shows all device nodes
		}
		mount := []string{"type=bind", "src=" + m.Host, "dst=" + m.Container}
		if !m.Writable {
			mount = append(mount, "ro")
		}
		options = append(options, "--mount "+commaSeparated(mount))
	}
	// One option has all variables: of an option with one, Apptainer removes quotes that belong to the value.
	return append(options, "--env "+commaSeparated(each(slices.Sorted(maps.Keys(o.Env)), func(name string) string { return name + "=" + o.Env[name] })))
}

// commaSeparated is a word for a shell, with values of which each can contain commas.
func commaSeparated(values []string) string {
	var record strings.Builder
	w := csv.NewWriter(&record)
	_ = w.Write(values)
	w.Flush()
	return terminal.ShellWord(strings.TrimSuffix(record.String(), "\n"))
}

func quotedJSON[T string | map[string]string](v T) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings cannot fail
	}
	return string(b)
}
