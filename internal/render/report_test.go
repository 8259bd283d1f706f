package render

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"cosplay/catalog"
	"cosplay/internal/resource"
)

// reported has a session whose programs ended in every way, one with two GPUs, and one that did nothing.
func reported() map[resource.Address]resource.Report {
	at := func(s int) float64 { return float64(time.Date(2026, 11, 22, 14, 30, s, 0, time.Local).Unix()) }
	trained := resource.Work{Launches: 34120, FLOPs: 1.2345e12, ToDevice: 12 << 20, ToHost: 1 << 10}
	shared := resource.Work{Launches: 220, FLOPs: 389120, ToDevice: 14928, ToHost: 68, Between: 5 << 30,
		Collectives: map[string]resource.Collective{"all_reduce": {Count: 10, Bytes: 47460}, "barrier": {Count: 1}}}
	program := func(name string, start int, w resource.Work) resource.ProgramReport {
		return resource.ProgramReport{Work: w, PID: 4000 + start, Name: name, Start: at(start), Updated: at(start + 9), End: at(start + 9),
			Devices: []resource.DevicePeak{{Allocated: 3 << 30, Reserved: 5812 << 20}}}
	}
	ended, caught, failed, ranOut, runs := program("train.py", 0, trained), program("tune.py", 10, trained), program("evaluate.py", 20, resource.Work{Launches: 3}),
		program("large.py", 30, trained), program("train.py", 40, trained)
	caught.OutOfMemory = 2
	failed.Failure, failed.FailureText = "ValueError", "Expected input batch_size (32) to match target batch_size (16)."
	ranOut.Failure, ranOut.FailureText, ranOut.OutOfMemory = "OutOfMemoryError", "CUDA out of memory. Tried to allocate 64.00 MiB.", 1
	runs.End = 0
	first, second := program("ddp.py", 0, shared), program("ddp.py", 0, shared)
	first.Rank, second.Rank = new(0), new(1)
	second.Devices = []resource.DevicePeak{{Index: 0, Reserved: 2 << 20}, {Index: 1, Allocated: 5000, Reserved: 2 << 20}}
	one := resource.Report{Peaks: []int{6144}, Earlier: 12, Total: resource.Work{Launches: 1 << 20, FLOPs: 9.87e15, ToDevice: 3 << 40},
		Programs: []resource.ProgramReport{ended, caught, failed, ranOut, runs}}
	two := resource.Report{Peaks: []int{1100, 302}, Programs: []resource.ProgramReport{first, second}}
	two.Total.Add(shared)
	two.Total.Add(shared)
	return map[resource.Address]resource.Report{resource.Nth("worker", 0): one, resource.Nth("worker", 1): two, resource.Nth("worker", 2): {Peaks: []int{0}}}
}

func reportScreens() []screen {
	w := one().applied()
	show := func(name string, v ReportView) screen {
		return screen{name, func(w io.Writer, s Style) { Show(w, s, v) }}
	}
	status := w.status()
	status.Targets, status.Used, status.Reports = catalog.Targets, usedByTwo, reported()
	used := map[resource.Address]resource.Use{resource.Nth("worker", 0): {PeakMiB: 5812}}
	ran := RanView{Target: targetOf("2060"), Used: used, AppliedView: AppliedView{Plan: w.plan(), Took: time.Second, Targets: catalog.Targets}}
	ran.Report = reported()[resource.Nth("worker", 1)]
	return []screen{
		show("report", ReportView{w.prior.Sessions[:4], reported()}),
		show("report-none", ReportView{}),
		{"status-reported", func(w io.Writer, s Style) { Show(w, s, status) }},
		{"ran-reported", func(w io.Writer, s Style) { Ran(w, s, ran) }},
	}
}

func TestScaled(t *testing.T) {
	for x, want := range map[float64]string{0: "0 ", 999: "999 ", 999.6: "1 k", 1234: "1.23 k", 5e20: "500 E", 7e24: "7e+06 E"} {
		if got := scaled(x); got != want {
			t.Errorf("%v reads %q, want %q", x, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", 1 << 55: "32768.0 TiB"} {
		if got := strings.ReplaceAll(byteWords(n), hard, " "); got != want {
			t.Errorf("%d reads %q, want %q", n, got, want)
		}
	}
}

// The order of elements and the attributes that the schema of Ant's JUnit reports requires.
var (
	junitChildren   = map[string]string{"testsuites": "testsuite*", "testsuite": "properties testcase* system-out system-err", "properties": "property*", "testcase": "failure|error"}
	junitAttributes = map[string]string{"testsuites": "", "testsuite": "name package id timestamp hostname tests failures errors time", "properties": "", "property": "name value",
		"testcase": "name classname time", "failure": "message type", "error": "message type", "system-out": "", "system-err": ""}
)

// element is any XML.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// hold holds an element to the schema.
func (e element) hold(t *testing.T) {
	t.Helper()
	var attrs, children []string
	for _, a := range e.Attrs {
		attrs = append(attrs, a.Name.Local)
	}
	if want, known := junitAttributes[e.XMLName.Local]; !known || strings.Join(attrs, " ") != want {
		t.Errorf("%s has the attributes %v", e.XMLName.Local, attrs)
	}
	for _, c := range e.Children {
		c.hold(t)
		children = append(children, c.XMLName.Local)
	}
	got := strings.Join(children, " ")
	sound := false
	switch want := junitChildren[e.XMLName.Local]; {
	case want == "failure|error":
		sound = got == "" || got == "failure" || got == "error"
	case strings.HasSuffix(want, "*") && !strings.Contains(want, " "):
		sound = strings.Trim(strings.ReplaceAll(got+" ", strings.TrimSuffix(want, "*")+" ", ""), " ") == ""
	case strings.Contains(want, "*"):
		sound = got == strings.ReplaceAll(want, "*", "") // a suite has one test case
	default:
		sound = got == ""
	}
	if !sound {
		t.Errorf("%s has the elements %q", e.XMLName.Local, got)
	}
	if at := e.attr("timestamp"); at != "" {
		if _, err := time.Parse("2006-01-02T15:04:05", at); err != nil {
			t.Error(err)
		}
	}
}

func TestJUnit(t *testing.T) {
	target, all := targetOf("2060"), reported()
	base := JUnitView{Command: "python train.py", Target: target, Host: "localhost", Began: time.Unix(0, 0), Took: time.Second, Ran: true, Targets: catalog.Targets}
	with := func(change func(v *JUnitView)) JUnitView {
		v := base
		change(&v)
		return v
	}
	for _, test := range []struct {
		name  string
		view  JUnitView
		cases string // each with its result
		text  string // somewhere
	}{
		{"passed without a program", base, "python train.py: passed", `name="exit_code" value="0"`},
		{"failed without a program", with(func(v *JUnitView) { v.Code = 3 }), "python train.py: exit code", "the exit code is 3"},
		{"ran out of memory without a program", with(func(v *JUnitView) { v.Code, v.Used = 1, resource.Use{PeakMiB: 6100, OutOfMemory: 1} }),
			"python train.py: OutOfMemory", "6144 MiB are not enough; cosplay fits -- COMMAND finds the card"},
		{"not created", with(func(v *JUnitView) { v.Ran, v.Code, v.Target = false, 1, resource.Target{} }), "python train.py: error session", "could not be created"},
		{"refused", with(func(v *JUnitView) { v.Ran, v.Code, v.Failure = false, 1, errors.New("no \x1b room") }), "python train.py: error session", `no \x1b room`},
		{"programs", with(func(v *JUnitView) { v.Report, v.Used = all[resource.Nth("worker", 1)], resource.Use{PeakMiB: 300} }),
			"ddp.py (rank 0): passed, ddp.py (rank 1): passed", `name="all_reduce_bytes" value="47460"`},
		{"programs of a command that failed", with(func(v *JUnitView) { v.Report, v.Code = all[resource.Nth("worker", 1)], 2 }),
			"ddp.py (rank 0): passed, ddp.py (rank 1): passed, python train.py: exit code", ""},
		{"programs that failed", with(func(v *JUnitView) {
			v.Report, v.Code, v.Used = all[resource.Nth("worker", 0)], 1, resource.Use{PeakMiB: 6100, OutOfMemory: 3, Overcome: 1}
		}), "train.py: passed, tune.py: passed, evaluate.py: ValueError, large.py: OutOfMemoryError, train.py: killed", "Ran out of memory 2 times: 6144 MiB are not enough"},
		{"a program without an end", with(func(v *JUnitView) { v.Report.Programs = all[resource.Nth("worker", 0)].Programs[4:] }), "train.py: passed", `name="cuda0_peak_reserved_bytes" value="6094323712"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := JUnit(test.view)
			if err != nil {
				t.Fatal(err)
			}
			var suites element
			if err := xml.Unmarshal(out, &suites); err != nil {
				t.Fatal(err)
			}
			suites.hold(t)
			var cases []string
			for _, suite := range suites.Children {
				one, result, failures, errs := suite.Children[1], "passed", "0", "0"
				if len(one.Children) > 0 {
					result = one.Children[0].attr("type")
					if failures = "1"; one.Children[0].XMLName.Local == "error" {
						result, failures, errs = "error "+result, "0", "1"
					}
				}
				if suite.attr("failures") != failures || suite.attr("errors") != errs || suite.attr("tests") != "1" {
					t.Errorf("%s counts %v", suite.attr("name"), suite.Attrs)
				}
				cases = append(cases, one.attr("name")+": "+result)
			}
			if got := strings.Join(cases, ", "); got != test.cases || !strings.Contains(string(out), test.text) {
				t.Errorf("got %s, want %s and %q in\n%s", got, test.cases, test.text, out)
			}
		})
	}
}
