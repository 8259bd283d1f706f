package verify

import (
	"encoding/xml"
	"fmt"
	"strings"

	"cosplay/internal/pattern"
)

var views = []struct {
	key  string
	args []string
}{
	{"smi.table", nil},
	{"smi.list", []string{"-L"}},
	{"smi.full", []string{"-q"}},
	{"smi.xml", []string{"-q", "-x"}},
	{"smi.query", []string{"--query-gpu=name,memory.total,power.max_limit", "--format=csv,noheader"}},
}

const smiFix = "a library or an nvidia-smi in the session bypasses the disguise: see which one (type -a nvidia-smi, ldconfig -p) and take it out of the image"

var smiChecks = of(SMI, smiFix, []check[Inside]{
	{name: "smi.table", expected: func(w Wanted) string { return shows(tableWords(w)) }, found: view("smi.table", func(w Wanted, text string) string {
		return inspect(text, tableWords(w), append(w.behind(), `MIG devices:`))
	})},
	{name: "smi.list", expected: func(w Wanted) string {
		return w.each(func(n int, uuid string) string { return fmt.Sprintf("GPU %d: %s (UUID: %s)", n, w.Name, uuid) })
	},
		found: view("smi.list", func(_ Wanted, text string) string { return strings.Join(lines(text), "; ") })},
	{name: "smi.full", expected: func(w Wanted) string { return shows(fullWords(w)) }, found: view("smi.full", func(w Wanted, text string) string {
		return inspect(blanks().ReplaceAllString(text, " : "), fullWords(w), append(w.behind(), "MIG Device"))
	})},
	{name: "smi.xml", expected: xmlWanted, found: view("smi.xml", xmlFound)},
	{name: "smi.name", expected: ofEach(wantsName), found: column(0)},
	{name: "smi.memory", expected: ofEach(wantsMemory), found: column(1)},
	{name: "smi.power", expected: ofEach(func(w Wanted) string { return watts(w.Power.Max) }), found: column(2)},
}...)

func view(key string, look func(Wanted, string) string) func(Wanted, Inside) answer {
	return func(w Wanted, in Inside) answer {
		out := in.Answers[key]
		switch {
		case out.absent():
			return skip("there is no nvidia-smi in the session")
		case out.Code != 0 || out.Text == "":
			return found(out.ended())
		}
		return found(look(w, out.Text))
	}
}

// column is a figure of each device that nvidia-smi prints on request.
func column(n int) func(Wanted, Inside) answer {
	return view("smi.query", func(_ Wanted, text string) string {
		all := lines(text)
		for i, line := range all {
			if fields := strings.Split(line, ", "); n < len(fields) {
				all[i] = fields[n]
			}
		}
		return strings.Join(all, "; ")
	})
}

func watts(mw int) string { return fmt.Sprintf("%.2f W", float64(mw)/1000) }

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// behind returns texts that would reveal the physical GPU; none if the target has the same name.
func (w Wanted) behind() []string {
	name := strings.TrimPrefix(w.Host, "NVIDIA ")
	if name == "" || strings.Contains(w.Name, name) {
		return nil
	}
	return []string{name}
}

// nameRoom is the number of characters of a name that the table always shows.
const nameRoom = 20

func tableWords(w Wanted) []string {
	return []string{w.Name[:min(nameRoom, len(w.Name))], fmt.Sprintf("%dMiB", w.MemoryMiB), fmt.Sprintf("%dW", w.Power.Limit/1000)}
}

var blanks = pattern.Of(` +: `)

func fullWords(w Wanted) []string {
	return []string{"Product Name : " + w.Name, "GPU UUID : " + w.UUID, fmt.Sprintf("Total : %d MiB", w.MemoryMiB), "Max Power Limit : " + watts(w.Power.Max)}
}

func shows(words []string) string {
	return strings.Join(words, ", ") + "; no MIG, nothing of the GPU behind"
}

// inspect lists what a text lacks, and what it must not show.
func inspect(text string, want, hide []string) string {
	var wrong []string
	for _, word := range want {
		if !strings.Contains(text, word) {
			wrong = append(wrong, fmt.Sprintf("no %q in it", word))
		}
	}
	for _, word := range hide {
		if strings.Contains(text, word) {
			wrong = append(wrong, fmt.Sprintf("it shows %q", strings.TrimSuffix(word, ":")))
		}
	}
	if len(wrong) > 0 {
		return strings.Join(wrong, "; ")
	}
	return shows(want)
}

type smiXML struct {
	GPUs []struct {
		Name   string `xml:"product_name"`
		UUID   string `xml:"uuid"`
		MIG    string `xml:"mig_mode>current_mig"`
		Slices struct {
			All []struct{} `xml:"mig_device"`
		} `xml:"mig_devices"`
		Memory string `xml:"fb_memory_usage>total"`
	} `xml:"gpu"`
}

func xmlWanted(w Wanted) string {
	return w.each(func(_ int, uuid string) string {
		return fmt.Sprintf("%s, %s, %d MiB, MIG N/A", w.Name, uuid, w.MemoryMiB)
	})
}

func xmlFound(_ Wanted, text string) string {
	var log smiXML
	if err := xml.NewDecoder(strings.NewReader(text)).Decode(&log); err != nil {
		return "no XML: " + err.Error()
	}
	var all []string
	for _, gpu := range log.GPUs {
		words := fmt.Sprintf("%s, %s, %s, MIG %s", gpu.Name, gpu.UUID, gpu.Memory, gpu.MIG)
		if n := len(gpu.Slices.All); n > 0 {
			words += fmt.Sprintf(", %d MIG devices", n)
		}
		all = append(all, words)
	}
	return strings.Join(all, "; ")
}
