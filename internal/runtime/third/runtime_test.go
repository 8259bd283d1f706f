// Package third is the smallest complete runtime, which only its test registers. Its
// sessions are folders without a disguise.
package third

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"cosplay/internal/disguise"
	"cosplay/internal/preflight"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

var driver = runtime.Driver{
	Runtime: resource.Runtime{
		Name: "bare", Title: "bare", Where: "in bare folders", Body: "bare folder", RenewsInPlace: true, RemoveCommand: "rm -r",
	},
	Auto:         func(bool) bool { return false },
	Open:         func(h runtime.Host) runtime.Runtime { return open(h) },
	FolderSuffix: ".bare",
	Runs:         func(resource.Process, resource.Body) bool { return false },
	Readdress:    func(h runtime.Host, id string, to resource.Address) error { return open(h).readdress(id, to) },
}

type bare struct{ runtime.Host }

func open(h runtime.Host) bare { return bare{h} }

// record is what a session's folder has of the session.
type record struct {
	Body    resource.Body
	Session resource.Session
}

func (r bare) folder(session string) string { return filepath.Join(r.Folders+".bare", session) }

func (r bare) write(one record) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(one.Body.ID, "session.json"), data, 0o600)
}

func (r bare) readdress(session string, to resource.Address) error {
	all, err := r.records()
	for _, one := range all {
		if one.Session.ID == session {
			one.Session.Address = to
			err = errors.Join(err, r.write(one))
		}
	}
	return err
}

func (r bare) records() ([]record, error) {
	files, err := filepath.Glob(filepath.Join(r.folder("*"), "session.json"))
	var all []record
	for _, file := range files {
		var one record
		data, failed := os.ReadFile(file)
		err = errors.Join(err, failed, json.Unmarshal(data, &one))
		all = append(all, one)
	}
	return all, err
}

func (r bare) Prepare(_ context.Context, s resource.Session, given resource.Handle) (resource.Body, error) {
	body := resource.Body{ID: r.folder(s.ID), Session: s.ID, Host: r.Name, Runtime: driver.Name, State: resource.Running,
		Hash: s.Hash(r.Owner.Key), SliceID: given.UUID, Serial: r.Owner.Serial}
	return body, errors.Join(os.MkdirAll(body.ID, 0o700), r.write(record{body, s}))
}

func (r bare) Unprepare(_ context.Context, session string) (resource.Use, error) {
	return resource.Use{}, errors.Join(runtime.CheckSession(session), os.RemoveAll(r.folder(session)))
}

func (r bare) List(context.Context) (all []resource.Body, err error) {
	records, err := r.records()
	for _, one := range records {
		all = append(all, one.Body)
	}
	return all, err
}

func (r bare) Remains(context.Context) (all []resource.Remains, err error) {
	records, err := r.records()
	for _, one := range records {
		all = append(all, resource.Remains{Session: one.Session, Body: one.Body, Proven: true})
	}
	return all, err
}

func (r bare) Exec(ctx context.Context, session string, p runtime.Program, s runtime.Streams) (int, error) {
	command := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	command.Dir, command.Stdin, command.Stdout, command.Stderr = r.folder(session), s.In, s.Out, s.Err
	err := command.Run()
	return command.ProcessState.ExitCode(), err
}

func (r bare) Usage(string) (disguise.Usage, error) { return disguise.Usage{}, fs.ErrNotExist }

func (r bare) Interior(resource.PriorSession) (runtime.Interior, error) {
	return runtime.Interior{}, nil
}

func (r bare) Altered(context.Context, resource.PriorSession) (map[string]string, error) {
	return nil, nil
}

func (r bare) Survey(context.Context) (runtime.Survey, error) {
	return runtime.Survey{Check: func(_ context.Context, s resource.Session, _ map[string]bool) []preflight.Problem {
		return runtime.CheckWorkspace(s.Workspace)
	}}, nil
}
