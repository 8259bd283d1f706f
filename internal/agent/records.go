package agent

import (
	"context"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Ledger reads the ledger of the host, and no GPU. If it is as known says, it returns no pages; stamp is what to say the
// next time, and another text after any page has changed.
func (c *Client) Ledger(ctx context.Context, known string) (pages []resource.Page, stamp string, err error) {
	answer, err := c.reads.ask(ctx, request{Op: opLedger, Known: known}, readDeadline)
	pages = prose.Each(answer.Ledger, wirePage.page)
	if far := c.reads.options.Far; far != nil {
		pages = far.known(pages)
	}
	return pages, answer.Stamp, err
}

// History reads what users have asked of the host, oldest first.
func (c *Client) History(ctx context.Context) ([]ledger.Attempted, error) {
	answer, err := c.reads.ask(ctx, request{Op: opHistory}, readDeadline)
	if far := c.reads.options.Far; far != nil && far.Here.UID != nil {
		for i := range answer.History {
			if a := &answer.History[i]; a.UID == far.There {
				a.UID, a.User = *far.Here.UID, far.Here.User
			}
		}
	}
	return answer.History, err
}

// Released lists the GPUs, by UUID, that a project has acquired and released since.
func (c *Client) Released(ctx context.Context, lineage string) ([]string, error) {
	answer, err := c.reads.ask(ctx, request{Op: opReleased, Holder: resource.Holder{Lineage: lineage}}, readDeadline)
	return answer.Released, err
}

// MayChange checks whether changes are possible, and makes none. A root agent returns the MPS daemons of other users.
func (c *Client) MayChange(ctx context.Context) ([]resource.ForeignDaemon, error) {
	op := opRead
	if c.changes == c.reads {
		op = opMayChange
	}
	answer, err := c.changes.ask(ctx, request{Op: op}, readDeadline)
	if err != nil || answer.Host == nil {
		return nil, err
	}
	return answer.Host.MPS.Foreign, nil
}

// RunMPS starts the MPS daemon of a GPU or a MIG slice by its UUID, or of several GPUs, unless it runs, and sets its
// defaults. The user's own agent does it: a daemon runs as the user of the sessions.
func (c *Client) RunMPS(ctx context.Context, uuid string, m resource.MPS) error {
	_, err := c.reads.ask(ctx, request{Op: opRunMPS, GPU: uuid, Daemon: &m}, changeDeadline)
	return err
}

// StopMPS ends an MPS daemon with its servers, and removes its folder. One that does not exist is no error.
func (c *Client) StopMPS(ctx context.Context, m resource.MPS) error {
	_, err := c.reads.ask(ctx, request{Op: opStopMPS, Daemon: &m}, changeDeadline)
	return err
}

// Sessions asks a runtime on the machine of the agent, for a client on another. Only one with Options.Far can. within is
// how long the answer may take, besides what every answer may.
func (c *Client) Sessions(ctx context.Context, question []byte, within time.Duration) ([]byte, error) {
	answer, err := c.reads.ask(ctx, request{Op: opSessions, Sessions: question}, changeDeadline+within)
	return answer.Sessions, err
}
