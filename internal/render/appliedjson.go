package render

import (
	"io"

	"cosplay/internal/resource"
	"cosplay/internal/words"
)

type failureJSON struct {
	Step   string `json:"step"`
	Title  string `json:"title"`
	Error  string `json:"error"`
	Undone bool   `json:"undone"`
	Left   string `json:"left,omitempty"`
	Code   int    `json:"nvml_code,omitempty"`
}

// madeJSON is a session as the state has it after a run.
type madeJSON struct {
	Address   resource.Address    `json:"address"`
	Name      string              `json:"name"` // as people type it
	Slice     resource.Slice      `json:"slice"`
	SliceUUID string              `json:"slice_uuid"` // of its MIG device; "" on a whole GPU
	Runtime   string              `json:"runtime"`
	Image     string              `json:"image,omitempty"` // in a container
	Container *resource.Container `json:"container"`
	SSH       *sshJSON            `json:"ssh"` // null where nobody can log in
}

func madeOf(prior resource.Prior) []madeJSON {
	all := []madeJSON{}
	for _, s := range prior.Sessions {
		one := madeJSON{Address: s.Address, Name: s.Address.Short(), Slice: s.Slice, Runtime: s.Runtime, Image: s.Session.Spec.Image,
			Container: s.Container, SSH: sshOf(s.Session, s.Container)}
		if s.Handle != nil {
			one.SliceUUID = s.Handle.UUID
		}
		all = append(all, one)
	}
	return all
}

// AppliedJSON writes what came of a run as data.
func AppliedJSON(w io.Writer, v AppliedView) error {
	failures := []failureJSON{}
	for _, f := range v.Result.Failures {
		one := failureJSON{Step: f.Step.ID, Title: f.Step.Title, Error: f.Err.Error(), Undone: f.Undone}
		if v.NVMLCode != nil {
			one.Code = v.NVMLCode(f.Err)
		}
		if f.Left != nil {
			one.Left = f.Left.Error()
		}
		failures = append(failures, one)
	}
	notTried := []string{}
	for _, s := range v.Result.NotTried {
		notTried = append(notTried, s.ID)
	}
	problem := ""
	if v.Err != nil {
		problem = v.Err.Error()
	}
	var verified *verifyJSON
	if v.Verify != nil {
		verified = v.Verify.json()
	}
	t := achieved(v)
	return writeJSON(w, struct {
		FormatVersion int           `json:"format_version"`
		Destroy       bool          `json:"destroy"`
		Summary       achievedJSON  `json:"summary"`
		Done          []string      `json:"done"`
		Sessions      []madeJSON    `json:"sessions"` // all of the project, also those that stayed
		Ended         []endedJSON   `json:"ended"`    // those that used something of what they had
		Failures      []failureJSON `json:"failures"`
		NotTried      []string      `json:"not_tried"`
		Unrestored    []leftJSON    `json:"unrestored"` // settings that cosplay changed and cannot restore
		Interrupted   bool          `json:"interrupted"`
		TookSeconds   float64       `json:"took_seconds"`
		Serial        int           `json:"serial"`
		Error         string        `json:"error,omitempty"`
		Verify        *verifyJSON   `json:"verify,omitempty"` // with --verify

		Stuck       []resource.Address `json:"not_completed"` // unfinished sessions that the plan left as they are
		Outputs     []outputJSON       `json:"outputs"`
		Diagnostics []diagnosticJSON   `json:"diagnostics"` // checks that failed
	}{formatVersion, v.Destroy, achievedJSON(t), list(v.Result.Done), madeOf(v.Result.Prior), endedOf(v), failures, notTried, unrestored(v),
		v.Result.Interrupted, v.Took.Seconds(), v.Result.Prior.Serial, problem, verified, list(v.Plan.Diff.Stuck), outputsJSON(v.Outputs), diagnosticsJSON(v.Checks, v.Files)})
}

// leftJSON is a setting that is not restored.
type leftJSON struct {
	Host   string `json:"host"`
	GPU    string `json:"gpu"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

func unrestored(v AppliedView) []leftJSON {
	all := []leftJSON{}
	for _, c := range v.Plan.Diff.Unrestored() {
		for _, f := range c.Kept {
			if f.Left {
				all = append(all, leftJSON{c.Host, c.UUID, words.Field(f), words.Value(f.From, v.Live), words.Setting(f)})
			}
		}
	}
	return all
}

// achievedJSON is a tally of what was done.
type achievedJSON struct {
	Create   int `json:"created"`
	Change   int `json:"changed"`
	Replace  int `json:"replaced"`
	Destroy  int `json:"destroyed"`
	Move     int `json:"moved"`
	Forget   int `json:"forgotten"`
	Import   int `json:"imported"`
	SetUp    int `json:"gpus_set_up"`
	GiveBack int `json:"gpus_given_back"`
	Build    int `json:"images_built"`
	Pull     int `json:"images_pulled"`
	Sweep    int `json:"leftovers_removed"`
}
