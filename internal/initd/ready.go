package initd

import (
	"os"
	"syscall"
)

// ReadyPath is the named pipe through which cosplay-init reports that the session runs, while cosplay waits for that.
const ReadyPath = Dir + "/ready"

// Ready reports through a named pipe that the session runs. Without the pipe or its reader it does nothing: the engine
// has restarted the container.
func Ready(path string) {
	pipe, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	_, _ = pipe.Write([]byte{'\n'}) // the reader may have ended meanwhile
	_ = pipe.Close()
}
