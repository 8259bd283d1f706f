package render

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/terminal"
	"cosplay/internal/verdict"
)

// JUnitView is what cosplay run did, for a report in JUnit's XML.
type JUnitView struct {
	Command string          // as users type it
	Target  resource.Target // zero if it was never known
	Host    string
	Began   time.Time
	Took    time.Duration
	Ran     bool  // the session was created, and the command started
	Code    int   // exit code
	Failure error // of cosplay itself; nil if there is none
	Used    resource.Use
	Report  resource.Report
	Targets func() []resource.Target // the catalog's, for the verdict
}

// The elements of JUnit's XML, in the order that the schema of Ant's reports requires. A suite has properties and a test
// case has none, so each program is a suite.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Package    string          `xml:"package,attr"`
		ID         int             `xml:"id,attr"`
		Timestamp  string          `xml:"timestamp,attr"` // UTC
		Host       string          `xml:"hostname,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Seconds    string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Case       junitCase       `xml:"testcase"`
		Out        string          `xml:"system-out"`
		Err        string          `xml:"system-err"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Seconds string       `xml:"time,attr"`
		Error   *junitReason `xml:"error"`
		Failure *junitReason `xml:"failure"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the result of cosplay run: one test case for each program that used PyTorch's GPU, and one for the
// command where no program shows why it failed, or none reported.
func JUnit(v JUnitView) ([]byte, error) {
	var suites junitSuites
	shown := false // a program shows the failure
	for _, p := range v.Report.Programs {
		reason := v.failureOf(p)
		shown = shown || reason != nil
		suites.add(v.suite(programName(p), moment(p.Start), took(p), reason, v.programProperties(p)))
	}
	if !v.Ran || len(suites.Suites) == 0 || v.Code != 0 && !shown {
		suites.add(v.commandSuite())
	}
	return suites.xml()
}

func (s junitSuites) xml() ([]byte, error) {
	out, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(out, '\n')...), err
}

func (s *junitSuites) add(one junitSuite) {
	one.ID = len(s.Suites)
	s.Suites = append(s.Suites, one)
}

func (v JUnitView) suite(name string, began time.Time, took time.Duration, failure *junitReason, properties []junitProperty) junitSuite {
	s := junitSuite{Name: cmp.Or(terminal.Safe(name), "program"), Package: "cosplay." + cmp.Or(v.Target.Key, "run"), Timestamp: began.UTC().Format("2006-01-02T15:04:05"), Host: v.Host, Tests: 1,
		Seconds: fmt.Sprintf("%.3f", max(0, took.Seconds())), Properties: properties}
	s.Case = junitCase{Name: s.Name, Class: s.Package, Seconds: s.Seconds, Failure: failure}
	if failure != nil {
		s.Failures = 1
	}
	for _, p := range properties {
		s.Out += p.Name + ": " + p.Value + "\n"
	}
	return s
}

// failureOf is why a program failed; nil if it did not. One that has no end was killed if the command failed.
func (v JUnitView) failureOf(p resource.ProgramReport) *junitReason {
	switch {
	case p.RanOut():
		return &junitReason{Message: p.FailureText, Type: p.Failure, Text: p.FailureText + "\n" + v.verdict()}
	case p.Failure != "":
		return &junitReason{Message: p.FailureText, Type: p.Failure, Text: p.Failure + ": " + p.FailureText}
	case p.End == 0 && v.Code != 0:
		words := fmt.Sprintf("the program has no end: it was killed, or ended without Python's exit; the command's exit code is %d", v.Code)
		return &junitReason{Message: words, Type: "killed", Text: words}
	}
	return nil
}

// verdict is what would have been enough for the session, as a sentence; "" if it used no memory.
func (v JUnitView) verdict() string {
	found, used := verdict.Of(v.Used, v.Target, v.Targets())
	if !used {
		return ""
	}
	return prose.Sentence(found.String()) + "\n"
}

// commandSuite is that of the command itself.
func (v JUnitView) commandSuite() junitSuite {
	var failure *junitReason
	switch {
	case v.Code == 0:
	case v.Used.RanOut() > 0:
		failure = &junitReason{Message: strings.TrimSpace(v.verdict()), Type: "OutOfMemory", Text: fmt.Sprintf("%sThe exit code is %d.\n", v.verdict(), v.Code)}
	default:
		words := fmt.Sprintf("the exit code is %d", v.Code)
		failure = &junitReason{Message: words, Type: "exit code", Text: prose.Sentence(words) + "\n" + v.verdict()}
	}
	s := v.suite(v.Command, v.Began, v.Took, failure, append(v.targetProperties(), junitProperty{"exit_code", strconv.Itoa(v.Code)}))
	if !v.Ran {
		words := "the command did not start: its session could not be created"
		if v.Failure != nil {
			words = terminal.Safe(v.Failure.Error())
		}
		s.Case.Failure, s.Failures = nil, 0
		s.Case.Error, s.Errors = &junitReason{Message: words, Type: "session", Text: words}, 1
	}
	return s
}

func (v JUnitView) targetProperties() []junitProperty {
	if v.Target.Key == "" {
		return []junitProperty{}
	}
	return []junitProperty{{"target", v.Target.Key}, {"memory_mib", strconv.Itoa(v.Target.MemoryMiB)}, {"session_peak_mib", strconv.Itoa(v.Used.PeakMiB)}}
}

func (v JUnitView) programProperties(p resource.ProgramReport) []junitProperty {
	all := v.targetProperties()
	add := func(name string, value int) { all = append(all, junitProperty{name, strconv.Itoa(value)}) }
	for _, d := range p.Devices {
		add(fmt.Sprintf("cuda%d_peak_allocated_bytes", d.Index), d.Allocated)
		add(fmt.Sprintf("cuda%d_peak_reserved_bytes", d.Index), d.Reserved)
	}
	all = append(all, junitProperty{"flops", strconv.FormatFloat(p.FLOPs, 'f', 0, 64)})
	add("launches", p.Launches)
	add("host_to_device_bytes", p.ToDevice)
	add("device_to_host_bytes", p.ToHost)
	add("device_to_device_bytes", p.Between)
	add("out_of_memory", p.OutOfMemory)
	for _, kind := range slices.Sorted(maps.Keys(p.Collectives)) {
		add(kind+"_count", p.Collectives[kind].Count)
		add(kind+"_bytes", p.Collectives[kind].Bytes)
	}
	return all
}
