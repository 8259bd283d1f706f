package sshd

import (
	"net"
	"os"
	"path/filepath"
)

// agentSocket forwards to the ssh agent of the client. A nil one does nothing.
type agentSocket struct {
	path     string
	listener net.Listener
}

// openAgent makes a socket that the session's user alone can reach.
func (s *session) openAgent() bool {
	if s.agent != nil || s.started {
		return false
	}
	dir, err := os.MkdirTemp("", "cosplay-agent-")
	if err != nil {
		return false
	}
	a := &agentSocket{path: filepath.Join(dir, "agent")}
	if a.listener, err = net.Listen("unix", a.path); err != nil {
		_ = os.RemoveAll(dir)
		return false
	}
	account := s.server.Launcher.Account
	_ = os.Chown(a.path, int(account.UID), int(account.GID)) // fails if the process runs as the user, who then already owns it
	_ = os.Chown(dir, int(account.UID), int(account.GID))
	s.agent = a
	go func() {
		for {
			c, err := a.listener.Accept()
			if err != nil {
				return
			}
			go s.toAgent(c)
		}
	}()
	return true
}

func (s *session) toAgent(c net.Conn) {
	ch, requests, err := s.conn.OpenChannel("auth-agent@openssh.com", nil)
	if err != nil {
		shut(c)
		return
	}
	join(ch, requests, c)
}

func (a *agentSocket) close() {
	if a != nil {
		shut(a.listener)
		_ = os.RemoveAll(filepath.Dir(a.path))
	}
}
