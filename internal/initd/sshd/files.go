package sshd

import (
	"errors"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// ServeFiles speaks sftp on the standard streams, in the name of whoever runs
// this process. Relative paths start where commands do.
func ServeFiles() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	stream := struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}
	server, err := sftp.NewServer(stream, sftp.WithServerWorkingDirectory(dir))
	if err != nil {
		return err
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return server.Close()
}
