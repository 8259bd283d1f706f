package docker

import (
	"context"
	"errors"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"cosplay/internal/runtime"
)

// Logs writes what the container of a session has printed: lines of cosplay-init and of the session's command.
func (r Runtime) Logs(ctx context.Context, session string, o runtime.LogOptions, out, err io.Writer) error {
	there, failed := r.inhabited(ctx, session)
	if failed != nil {
		return failed
	}
	log, failed := r.Engine.client.ContainerLogs(ctx, there.ID, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Follow: o.Follow, Tail: o.Tail, Timestamps: o.Timestamps})
	if failed != nil {
		return explain("reading the log of "+Name(session), failed, subject{name: Name(session)})
	}
	defer log.Close()
	if _, failed = stdcopy.StdCopy(out, err, log); errors.Is(failed, context.Canceled) {
		return nil // the user has stopped it
	}
	return failed
}
