package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cosplay/internal/resource"
	"cosplay/internal/terminal"
)

// FitsMarkdown writes what fits found out for a pull request.
func FitsMarkdown(w io.Writer, v FitsView) error {
	m := &markdown{}
	if v.Broken != nil {
		m.block("**" + plainText(v.Broken.words(v.Command)) + "**")
		m.block("```", terminal.Safe(strings.ReplaceAll(v.Broken.Output, "```", "'''")), "```")
		_, err := io.WriteString(w, m.text.String())
		return err
	}
	m.block("**" + plainText(v.answer()) + "**")
	lines := []string{"| memory | result | headroom | " + strings.ToLower(v.timeTitle()) + " | cards |", "|--:|---|--:|--:|---|"}
	for _, r := range v.rows() {
		headroom, least := "", ""
		if r.least.Result.Runs() {
			headroom = mib(r.least.HeadroomMiB())
		}
		if bound := v.leastTime(r.least); bound != nil {
			least = secondsWords(bound.Seconds) + ", " + bound.By
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s |", r.memory(), resultCell(r.least).text(), headroom, least, plainText(r.cards())))
	}
	m.block(lines...)
	if v.Peak != nil && v.Peak.Fullest != nil {
		m.memory("At the peak: "+byteWords(v.Peak.Fullest.Reserved)+" reserved: "+kindWords(*v.Peak.Fullest), *v.Peak.Fullest)
	}
	if v.Refused != nil && v.Refused.Error != nil {
		f := *v.Refused.Error
		m.memory("Out of memory on "+CardName(v.RefusedOn)+" in "+requestWords(v.Command, f), f.MemoryUse)
	}
	m.block(each(v.conclusions(), plainText)...)
	_, err := io.WriteString(w, m.text.String())
	return err
}

// memory is a table of the lines that had the memory.
func (m *markdown) memory(head string, u resource.MemoryUse) {
	m.block(plainText(head))
	lines := []string{"| memory | for | line | code |", "|--:|---|---|---|"}
	for _, l := range u.Lines[:min(linesShown, len(u.Lines))] {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |", byteWords(l.Bytes), kindName(l.Kind), plainText(placeWords(l.CodeLine)), code(l.Code)))
	}
	m.block(lines...)
}

// FitsJUnit returns what fits found out as JUnit's XML: a test case for each GPU that --need names, otherwise one for the command.
func FitsJUnit(v FitsView) ([]byte, error) {
	var suites junitSuites
	began := time.Now().Add(-v.Took)
	add := func(name string, t resource.Target, failure *junitReason) {
		one := JUnitView{Host: "localhost", Target: t, Began: began}
		properties := []junitProperty{{"command", v.Command}, {"peak_mib", strconv.Itoa(v.PeakMiB)}}
		if best := v.smallest(); best != nil {
			properties = append(properties, junitProperty{"smallest", best.Card.Target().Key}, junitProperty{"smallest_memory_mib", strconv.Itoa(best.Card.MemoryMiB)})
		}
		suites.add(one.suite(name, began, v.Took, failure, properties))
	}
	answer := v.answer()
	if v.Broken != nil {
		answer = v.Broken.words(v.Command)
	}
	for _, t := range v.Needed {
		var failure *junitReason
		if v.Broken != nil || !v.on(t).Result.Runs() {
			failure = &junitReason{Message: v.Command + " does not run on " + CardName(t), Type: "capacity", Text: v.whyNot(answer)}
		}
		add(CardName(t), t, failure)
	}
	if len(v.Needed) == 0 {
		var failure *junitReason
		if !v.Passes() {
			failure = &junitReason{Message: answer, Type: "capacity", Text: v.whyNot(answer)}
		}
		add(v.Command, resource.Target{}, failure)
	}
	out, err := xml.MarshalIndent(suites, "", "  ")
	return append([]byte(xml.Header), append(out, '\n')...), err
}

// whyNot is the answer, with the request that could not be served or the end of what the command printed.
func (v FitsView) whyNot(answer string) string {
	words := answer + "\n"
	if v.Refused != nil && v.Refused.Error != nil {
		words += "Out of memory on " + CardName(v.RefusedOn) + " in " + requestWords(v.Command, *v.Refused.Error) + "\n"
	}
	if v.Broken != nil {
		words += terminal.Safe(v.Broken.Output)
	}
	return words
}
