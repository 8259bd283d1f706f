package agent

import (
	"context"
	"errors"

	"cosplay/internal/ledger"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Ledger reads the ledger of the host, and no GPU. If it is as known says, it returns no pages; stamp is what to say the
// next time, and another text after any page has changed.
func (c *Client) Ledger(ctx context.Context, known string) (pages []resource.Page, stamp string, err error) {
	answer, err := c.reads.ask(ctx, request{Op: opLedger, Known: known}, readDeadline)
	return prose.Each(answer.Ledger, wirePage.page), answer.Stamp, err
}

// History reads what users have asked of the host, oldest first.
func (c *Client) History(ctx context.Context) ([]ledger.Attempted, error) {
	answer, err := c.reads.ask(ctx, request{Op: opHistory}, readDeadline)
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
	return answer.Host.ForeignMPS, nil
}

// records answers from the records of the host, for which no GPU is asked.
func (l *nvmlLibrary) records(r request, answer *response) (err error) {
	if l.guard != nil { // what its user may read, that user's agent reads
		return errors.New("an agent of root shows no records")
	}
	switch r.Op {
	case opLedger:
		var pages []resource.Page
		if answer.Stamp, err = l.book.Stamp(); err == nil && answer.Stamp != r.Known {
			pages, err = l.book.Read()
		}
		answer.Ledger = prose.Each(pages, pageToWire)
	case opHistory:
		answer.History, err = l.book.History()
	case opReleased:
		answer.Released, err = l.book.Released(r.Holder.Lineage)
	case opMayChange:
		err = l.book.Writable()
	}
	return err
}
