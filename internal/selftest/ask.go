package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"cosplay/internal/disguise/verify"
	"cosplay/internal/project"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// run is a way of running a program in a session.
type run func(argv []string, stdin io.Reader) (verify.Output, error)

// ask runs all checks by one way. If the first program cannot run, the way counts as
// unavailable.
func ask(way verify.Way, interior runtime.Interior, run run) verify.Inside {
	in := verify.Inside{Way: way, Answers: map[string]verify.Output{}}
	for i, q := range verify.Questions(interior.Who, interior.Probe) {
		if err := run.answer(q, in); err != nil && i == 0 {
			if vacant, is := errors.AsType[runtime.VacantError](err); is {
				in.Vacant = vacant.Error()
			} else {
				in.Barred = err.Error()
			}
			return in
		}
	}
	_ = run.answer(verify.Follow(in.Answers), in) // the answer has the error
	return in
}

// answer adds the answer to a question.
func (r run) answer(q verify.Question, in verify.Inside) error {
	answer, err := r(q.Argv, strings.NewReader(q.Stdin))
	if err != nil {
		answer = verify.Output{Code: 1, Error: err.Error()}
	}
	in.Answers[q.Key] = answer
	return err
}

// execute runs a program by exec.
func execute(ctx context.Context, place runtime.Runtime, session string) run {
	return func(argv []string, stdin io.Reader) (verify.Output, error) {
		ctx, cancel := context.WithTimeout(ctx, questionTime)
		defer cancel()
		var out, said bytes.Buffer
		code, err := place.Exec(ctx, session, runtime.Program{Argv: argv}, runtime.Streams{In: stdin, Out: &out, Err: &said})
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return verify.Output{}, errSilent
		}
		if err != nil && code != runtime.NotFound && code != runtime.CannotRun {
			return verify.Output{}, err
		}
		if err != nil {
			said.WriteString(err.Error())
		}
		return verify.Output{Text: out.String(), Error: said.String(), Code: code}, nil
	}
}

// errSilent is the error of a check that has not ended in time.
var errSilent = fmt.Errorf("the checks have not ended within %s; a program of the session, or its GPU, hangs: cosplay logs, and dmesg for Xid errors", questionTime)

// sshFailed is the exit code of ssh if it could not connect.
const sshFailed = 255

// askBySSH runs the checks by ssh, with the client and the keys of the user.
func askBySSH(ctx context.Context, p *project.Project, s resource.PriorSession, interior runtime.Interior, prior resource.Prior, live resource.Live) verify.Inside {
	login, err := p.Login(ctx, s, prior, live)
	if err != nil {
		return verify.Inside{Way: verify.SSH, Barred: err.Error()}
	}
	options := []string{"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR"}
	for _, option := range login.Options {
		options = append(options, "-o", option.Name+"="+option.Value)
	}
	return ask(verify.SSH, interior, func(argv []string, stdin io.Reader) (verify.Output, error) {
		ctx, cancel := context.WithTimeout(ctx, questionTime)
		defer cancel()
		client := exec.CommandContext(ctx, "ssh", append(options, "--", login.Host, quoted(argv))...)
		var out, said bytes.Buffer
		client.Stdin, client.Stdout, client.Stderr = stdin, &out, &said
		err := client.Run()
		_, ended := errors.AsType[*exec.ExitError](err)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return verify.Output{}, errSilent
		case err != nil && !ended:
			return verify.Output{}, fmt.Errorf("ssh: %w", err)
		case client.ProcessState.ExitCode() == sshFailed:
			return verify.Output{}, errors.New(strings.Join(strings.Fields(said.String()), " "))
		}
		return verify.Output{Text: out.String(), Error: said.String(), Code: client.ProcessState.ExitCode()}, nil
	})
}

// quoted is a command line for any shell: sh has no escapes, so ShellWords is not for it.
func quoted(argv []string) string {
	words := prose.Each(argv, func(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" })
	return strings.Join(words, " ")
}
