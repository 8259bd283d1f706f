package render

import (
	"fmt"
	"io"
	"sync"
	"time"

	sizes "github.com/docker/go-units"

	"cosplay/internal/terminal"
)

// Copying shows on a terminal how much was copied, if that takes long. What is written to it counts.
type Copying struct {
	mu    sync.Mutex
	w     io.Writer
	style Style
	what  string
	begun time.Time
	last  time.Time // the screen is as of this time; zero while nothing is shown
	bytes int64
	off   bool
}

// How long a copy takes before it is shown, and how often it is.
const (
	showsAfter = time.Second
	showsEvery = 200 * time.Millisecond
)

// NewCopying makes the display of a copy. Off a terminal, and where it is to be quiet, it shows nothing.
func NewCopying(w io.Writer, s Style, what string, quiet bool) *Copying {
	_, isTerminal := descriptor(w)
	return &Copying{w: w, style: s, what: oneLine(what), begun: time.Now(), off: quiet || !isTerminal}
}

// Write counts bytes.
func (c *Copying) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(len(p))
	if now := time.Now(); !c.off && now.Sub(c.begun) >= showsAfter && now.Sub(c.last) >= showsEvery {
		c.last = now
		c.show(fmt.Sprintf("Copying %s: %s, %s/s", c.what, sizes.HumanSize(float64(c.bytes)), c.rate(now)))
	}
	return len(p), nil
}

// Close takes the line away or, after a copy that was shown, leaves what was copied.
func (c *Copying) Close(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return
	}
	c.off = true
	if c.show(""); !failed {
		fmt.Fprintf(c.w, "Copied %s: %s, %s/s\n", c.what, sizes.HumanSize(float64(c.bytes)), c.rate(time.Now()))
	}
}

func (c *Copying) rate(now time.Time) string {
	return sizes.HumanSize(float64(c.bytes) / max(now.Sub(c.begun).Seconds(), 0.001))
}

func (c *Copying) show(line string) {
	_, _ = io.WriteString(terminal.Raw(c.w), "\r\x1b[K"+c.style.paint(dim, terminal.Safe(head(line, c.style.width()-1))))
}
