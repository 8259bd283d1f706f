package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"cosplay/internal/render"
)

// statusPage is what status --json shows, as a loop last read it.
type statusPage struct{ last atomic.Pointer[[]byte] }

func (s *statusPage) show(v render.StatusView) {
	var page bytes.Buffer
	if err := render.JSON(&page, v); err == nil { // a buffer takes everything
		text := page.Bytes()
		s.last.Store(&text)
	}
}

func (s *statusPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	page := s.last.Load()
	if page == nil {
		http.Error(w, "the hosts have not been read yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(*page)
}

// servers serve a loop until they are closed.
type servers struct {
	http   []*http.Server
	socket string
}

func (s servers) close() {
	for _, one := range s.http {
		_ = one.Close()
	}
	if s.socket != "" {
		_ = os.Remove(s.socket)
	}
}

func (s *servers) serve(on net.Listener, handler http.Handler) {
	one := server(handler)
	s.http = append(s.http, one)
	go func() { _ = one.Serve(&crowd{Listener: on}) }()
}

// serve serves health and metrics at an address, and these with the status on a Unix socket. Either may be "".
func serve(address, socket string, health http.Handler, status *statusPage) (s servers, err error) {
	if address != "" {
		on, err := listenTCP(address)
		if err != nil {
			return s, err
		}
		s.serve(on, health)
	}
	if socket != "" {
		on, err := listenUnix(socket)
		if err != nil {
			s.close()
			return s, err
		}
		all := http.NewServeMux()
		all.Handle("/", health)
		all.Handle("GET /status", status)
		s.serve(on, all)
		s.socket = socket
	}
	return s, nil
}

// listenTCP listens at an address, on loopback unless it names a host.
func listenTCP(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s is no address; write HOST:PORT, like 127.0.0.1:9400", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	on, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w. Fix: choose another port, or end the program that has it (ss -ltnp)", err)
	}
	return on, nil
}

// longestSocket is how long the path of a Unix socket may be, in bytes (unix(7)).
const longestSocket = 107

// listenUnix listens on a Unix socket of mode 0600. It has that mode from its first moment on: it is made in a folder that
// other users cannot enter. A socket that a killed program left is replaced.
func listenUnix(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("--socket %s: there is something else; choose another path, or remove it", path)
	default:
		other, err := net.Dial("unix", path)
		if err == nil {
			_ = other.Close()
			return nil, fmt.Errorf("--socket %s: another program serves there; choose another path, or end it", path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("--socket: %w", err)
		}
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	defer func() { _ = os.Remove(private) }()
	at := filepath.Join(private, "s")
	if len(at) > longestSocket || len(path) > longestSocket {
		return nil, fmt.Errorf("--socket %s: the path is too long for a Unix socket; choose a shorter one", path)
	}
	on, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	on.SetUnlinkOnClose(false) // it gets another name
	if err := errors.Join(os.Chmod(at, 0o600), os.Rename(at, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("--socket: %w", err), on.Close(), os.Remove(at))
	}
	return on, nil
}
