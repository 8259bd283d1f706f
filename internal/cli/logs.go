package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cosplay/internal/project"
	"cosplay/internal/resource"
	"cosplay/internal/runtime"
	"cosplay/internal/terminal"
)

func logsCommand(inv *invocation) *cobra.Command {
	var (
		o     runtime.LogOptions
		since string
	)
	cmd := &cobra.Command{
		Use:   "logs [SESSION...]",
		Short: "Show what the containers of sessions have printed",
		Long: `Show what the containers of sessions have printed: of those that are named, of all of a block by its name, or of all.

With several sessions each line begins with its session: one session after the other or, with --follow, as lines are printed.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Since, err = moment(since, time.Now()); err != nil {
				return err
			}
			return inv.runLogs(cmd.Context(), args, o)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "keep printing new lines")
	cmd.Flags().StringVar(&since, "since", "", "only lines since this `time`: 10m, 2h, 2026-11-23, 2026-11-23T14:30:00")
	cmd.Flags().StringVarP(&o.Tail, "tail", "n", "all", "only the last `number` of lines of each session")
	cmd.Flags().BoolVarP(&o.Timestamps, "timestamps", "t", false, "show when each line was printed")
	return cmd
}

// moment reads a time: a duration before now, or a date with or without a time. One without a zone is local. "" is the
// zero time.
func moment(typed string, now time.Time) (time.Time, error) {
	if typed == "" {
		return time.Time{}, nil
	}
	if before, err := time.ParseDuration(typed); err == nil && before >= 0 {
		return now.Add(-before), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, typed, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %s: it takes a duration before now (90s, 10m, 2h) or a time (2026-11-23, 2026-11-23T14:30:00, 2026-11-23T14:30:00Z)", typed)
}

func (inv *invocation) runLogs(ctx context.Context, names []string, o runtime.LogOptions) error {
	if n, err := strconv.Atoi(o.Tail); o.Tail != "all" && (err != nil || n < 0) {
		return fmt.Errorf("--tail %s: it takes a number of lines, or all", o.Tail)
	}
	p, now, sessions, err := inv.peekChosen(ctx, names)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		return errors.New("there is no session yet; run cosplay apply first")
	}
	p.Machine.Rest()
	var loggers []runtime.Logger
	for _, s := range sessions {
		logger, err := project.Able[runtime.Logger](ctx, p.Project, s, now.Prior, "log")
		if err != nil {
			return err
		}
		loggers = append(loggers, logger)
	}
	var (
		wait   sync.WaitGroup
		lock   sync.Mutex
		failed = make([]error, len(sessions))
		widest = 0
	)
	for _, s := range sessions {
		widest = max(widest, len(s.Address.Short()))
	}
	read := func(i int, s resource.PriorSession) {
		out, complaints := &lines{to: terminal.Raw(inv.Out), lock: &lock}, &lines{to: inv.stderr, lock: &lock}
		if len(sessions) > 1 {
			out.begin = fmt.Sprintf("%-*s | ", widest, s.Address.Short())
			complaints.begin = out.begin
		}
		err := loggers[i].Logs(ctx, s.ID, o, out, complaints)
		out.end()
		complaints.end()
		if err != nil {
			failed[i] = fmt.Errorf("%s: %w", s.Address, err)
		}
	}
	for i, s := range sessions {
		if o.Follow {
			wait.Go(func() { read(i, s) })
		} else {
			read(i, s)
		}
	}
	wait.Wait()
	return errors.Join(failed...)
}

// lines writes whole lines, each with what it begins with, so that those of several writers do not mix. Without a
// beginning it writes what it gets.
type lines struct {
	to    io.Writer
	lock  *sync.Mutex // of all that write to the same place
	begin string
	rest  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	if l.begin == "" {
		return l.to.Write(p)
	}
	l.rest = append(l.rest, p...)
	last := bytes.LastIndexByte(l.rest, '\n')
	if last < 0 {
		return len(p), nil
	}
	whole := string(l.rest[:last])
	l.rest = append([]byte(nil), l.rest[last+1:]...)
	return len(p), l.print(whole)
}

func (l *lines) print(whole string) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	_, err := io.WriteString(l.to, l.begin+strings.ReplaceAll(whole, "\n", "\n"+l.begin)+"\n")
	return err
}

// end writes a last line that has no end.
func (l *lines) end() {
	if len(l.rest) > 0 {
		_ = l.print(string(l.rest)) // as far as it can be written
	}
}
