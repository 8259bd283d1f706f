package alerts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"syscall"
	"time"
)

// Deadlines of one message.
const (
	commandDeadline = 30 * time.Second
	postDeadline    = 5 * time.Second // of one try
)

// pauses are those before the second and the third try of a webhook.
var pauses = []time.Duration{500 * time.Millisecond, 2 * time.Second}

// Command is a line of shell that gets a message on standard input. It is killed, with its process group, at its
// deadline.
type Command struct {
	Line     string
	Out      io.Writer     // for what it prints
	Deadline time.Duration // 0 is 30 s
}

// Name is the same for the same line.
func (c Command) Name() string { return named("exec", c.Line) }

// Send runs the command. An exit code other than 0 means that it did not accept the message.
func (c Command) Send(ctx context.Context, message []byte) error {
	deadline := commandDeadline
	if c.Deadline > 0 {
		deadline = c.Deadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	command := exec.CommandContext(ctx, "/bin/sh", "-c", c.Line)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(message), c.Out, c.Out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second // for what left the group and keeps the output open
	err := command.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("--exec was killed after %s; the next run sends its findings again", deadline)
	}
	if err != nil {
		return fmt.Errorf("--exec: %w; the next run sends its findings again", err)
	}
	return nil
}

// Webhook is a URL to which messages are posted. Errors do not show its path, its query and its user, which can be
// secret.
type Webhook struct {
	to      *url.URL
	pauses  []time.Duration
	timeout time.Duration
}

// NewWebhook checks a URL.
func NewWebhook(address string) (Webhook, error) {
	to, err := url.Parse(address)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return Webhook{}, errors.New("write one like https://example.org/hook")
	}
	return Webhook{to, pauses, postDeadline}, nil
}

// Name is the same for the same URL.
func (w Webhook) Name() string { return named("notify", w.to.String()) }

// Send posts the message as JSON, and tries again after an error of the network or of the server.
func (w Webhook) Send(ctx context.Context, message []byte) error {
	for i := 0; ; i++ {
		again, err := w.post(ctx, message)
		if err == nil {
			return nil
		}
		if !again || i == len(w.pauses) {
			return fmt.Errorf("--notify %s://%s: %w; the next run sends its findings again", w.to.Scheme, w.to.Host, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.pauses[i]):
		}
	}
}

func (w Webhook) post(ctx context.Context, message []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.String(), bytes.NewReader(message))
	if err != nil {
		return false, errors.New("the URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "cosplay")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		if at, is := errors.AsType[*url.Error](err); is { // it has the whole URL
			err = at.Err
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("the server does not answer within %s", w.timeout)
		}
		return true, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests, fmt.Errorf("the server answers %s", answer.Status)
}

func named(kind, what string) string {
	sum := sha256.Sum256([]byte(what))
	return kind + "-" + hex.EncodeToString(sum[:4])
}
