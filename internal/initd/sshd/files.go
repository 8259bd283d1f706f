package sshd

import (
	"errors"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// ServeFiles serves sftp on the standard streams, as the user of this process. Relative paths start in the working
// folder.
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
