package cli

import (
	"bytes"
	"sync"
)

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	lock sync.Mutex
	text []byte
}

// tailBytes is how much a tail keeps.
const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.text = append(t.text, p...)
	if more := len(t.text) - tailBytes; more > 0 {
		t.text = bytes.Clone(t.text[more:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return string(t.text)
}
