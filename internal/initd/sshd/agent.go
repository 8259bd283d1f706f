package sshd

import (
	"net"
	"os"
	"path/filepath"
)

// openAgent creates a socket that only the session's user can reach, and forwards it to the client's ssh agent.
func (s *session) openAgent() bool {
	if s.agent != nil || s.started {
		return false
	}
	dir, err := os.MkdirTemp("", "cosplay-agent-")
	if err != nil {
		return false
	}
	path := filepath.Join(dir, "agent")
	if s.agent, err = net.Listen("unix", path); err != nil {
		_ = os.RemoveAll(dir)
		s.agent = nil
		return false
	}
	account := s.server.Launcher.Account
	_ = os.Chown(path, int(account.UID), int(account.GID)) // fails if the process runs as the user, who then already owns it
	_ = os.Chown(dir, int(account.UID), int(account.GID))
	go relay(s.agent, s.conn, "auth-agent@openssh.com", func(net.Conn) []byte { return nil })
	return true
}

func (s *session) closeAgent() {
	if s.agent != nil {
		shut(s.agent)
		_ = os.RemoveAll(filepath.Dir(s.agent.Addr().String()))
	}
}
