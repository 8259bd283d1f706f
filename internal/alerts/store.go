// Package alerts remembers findings of drift in a file, and sends a program or a webhook each beginning and each end of
// one once.
package alerts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cosplay/internal/durable"
	"cosplay/internal/findings"
	"cosplay/internal/public"
)

// Dir is the folder of the records, in the project's scratch folder.
const Dir = "findings"

// Store is the record of the findings of a project. Several processes can use it at a time.
type Store struct{ Path string }

// Receiver gets messages.
type Receiver interface {
	Name() string // the same in each run
	Send(ctx context.Context, message []byte) error
}

const (
	recordByte int64 = 0
	sendBytes  int64 = 1 << 32

	lockWait = 5 * time.Second
)

// Update compares what is found with the record, and changes the file only if findings began or ended.
func (s Store) Update(found []public.Drift) (c findings.Change, err error) {
	before, err := s.load()
	if err != nil {
		return c, err
	}
	if c = findings.Compare(before, found, now()); !c.Changed {
		return c, nil
	}
	err = s.change(func(before findings.Record) findings.Record {
		c = findings.Compare(before, found, now())
		return c.Record
	})
	return c, err
}

// Deliver sends a receiver what it was not sent. Nothing is sent while another process sends to it. What a receiver did
// not accept, the next call sends again.
func (s Store) Deliver(ctx context.Context, to Receiver, message func(begun, ended []public.DatedDrift) public.Notification) error {
	record, err := s.load()
	if err != nil {
		return err
	}
	if begun, ended := record.Unsent(to.Name()); len(begun)+len(ended) == 0 {
		return nil
	}
	sum := sha256.Sum256([]byte(to.Name()))
	instantly, cancel := context.WithCancel(ctx)
	cancel()
	lock, err := durable.LockByte(instantly, s.lockPath(), sendBytes+int64(binary.BigEndian.Uint32(sum[:4])))
	if _, busy := errors.AsType[*durable.BusyError](err); busy {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if record, err = s.load(); err != nil { // another process may have sent it meanwhile
		return err
	}
	begun, ended := record.Unsent(to.Name())
	if len(begun)+len(ended) == 0 {
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read it
	if err := encoder.Encode(message(begun, ended)); err != nil {
		return err
	}
	if err := to.Send(ctx, text.Bytes()); err != nil {
		return err
	}
	return s.change(func(r findings.Record) findings.Record { return r.Sent(to.Name(), begun, ended, now()) })
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func (s Store) lockPath() string { return s.Path + ".lock" }

// load reads the record. A damaged file is an empty one: its findings begin again.
func (s Store) load() (findings.Record, error) {
	var r findings.Record
	data, err := os.ReadFile(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("reading the findings: %w", err)
	}
	if json.Unmarshal(data, &r) != nil {
		return findings.Record{}, nil
	}
	if r.FormatVersion > findings.FormatVersion {
		return r, fmt.Errorf("%s was written by a newer cosplay (format %d). Fix: use that version, or remove the file, after which its findings begin again", s.Path, r.FormatVersion)
	}
	return r, nil
}

func (s Store) change(do func(findings.Record) findings.Record) error {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return fmt.Errorf("the findings cannot be written: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock, err := durable.LockByte(ctx, s.lockPath(), recordByte)
	if err != nil {
		return err
	}
	defer lock.Close()
	before, err := s.load()
	if err != nil {
		return err
	}
	after := do(before)
	if after.Findings = slices.Clone(after.Findings); after.Findings == nil {
		after.Findings = []findings.Entry{}
	}
	data, err := json.MarshalIndent(after, "", "  ")
	if err != nil {
		return err
	}
	return durable.ReplaceFile(s.Path, append(data, '\n'), 0o600)
}
