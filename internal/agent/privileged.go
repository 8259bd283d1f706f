//go:build cgo && linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cosplay/internal/ledger"
)

// ServePrivileged is the child that root runs for a user, started by sudo or by systemd
// for a connection to its socket: see Serve. It uses standard input and output and the
// system's ledger. A library other than the system's must be one that only root can change.
func ServePrivileged(library string) error {
	if _, err := newGuard(os.Environ(), os.Stdin); err == nil && !isClean(os.Environ()) {
		return startOver(os.Environ())
	} // else the first request gets the reason
	lib, err := openPrivileged(library)
	if _, refused := errors.AsType[*ledger.RefusedError](err); refused { // too many agents: this one ends
		return errors.Join(err, writeLine(os.Stdout, answered(response{Last: true}, request{}, err)))
	}
	if err != nil {
		lib = &nvmlLibrary{broken: fmt.Errorf("the agent does not work as root: %w", err)}
	}
	// No signal of the user may end the agent before its step is done.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	return lib.serve(os.Stdin, os.Stdout)
}

func openPrivileged(library string) (*nvmlLibrary, error) {
	g, err := newGuard(os.Environ(), os.Stdin)
	if err != nil {
		return nil, err
	}
	if err := lowLimit(); err != nil {
		return nil, err
	}
	if library != "" {
		if library, err = trustedFile(library); err != nil {
			return nil, fmt.Errorf("its NVML library must be root's: %w", err)
		}
	}
	if _, err := Trusted(ledger.SystemDir); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("the host's ledger must be root's: %w", err)
	}
	book := ledger.Book{Dir: ledger.SystemDir}
	place, err := book.Join(g.uid)
	if err != nil {
		(&nvmlLibrary{guard: g, book: book}).record(request{Op: "start"}, "", response{}, err)
		return nil, err
	}
	os.Clearenv()
	lib, err := open(library)
	if err != nil {
		return nil, err
	}
	lib.guard, lib.book, lib.place = g, book, place
	return lib, nil
}

// newGuard identifies the user for whom the agent works.
func newGuard(environ []string, in io.Reader) (*guard, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it was not started by root")
	}
	said := map[string]string{}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		said[name] = value
		// The loader has obeyed it already.
		if strings.HasPrefix(name, "LD_") {
			return nil, fmt.Errorf("%s is set: a rule for sudo must not let it through", name)
		}
	}
	uid, err := caller(said["SUDO_UID"], in)
	if err != nil {
		return nil, err
	}
	return &guard{uid: uid, user: userName(uid), policy: PolicyFile}, nil
}

// userName is the name of a user for others to read.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", uid)
}

// caller is the user on the other side, as sudo states or, for a socket, the kernel. Under
// sudo the socket does not count: another user may have created it.
func caller(sudoUID string, in io.Reader) (int, error) {
	if sudoUID != "" {
		uid, err := strconv.ParseUint(sudoUID, 10, 31)
		if err != nil {
			return 0, fmt.Errorf("SUDO_UID is %q", sudoUID)
		}
		return int(uid), nil
	}
	if file, ok := in.(*os.File); ok {
		if peer, err := unix.GetsockoptUcred(int(file.Fd()), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && peer.Pid != 0 {
			return int(peer.Uid), nil
		}
	}
	return 0, errors.New("it cannot determine the user: start it by sudo, or by systemd for a socket")
}
