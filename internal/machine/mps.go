package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"

	"cosplay/internal/ledger"
	"cosplay/internal/mps"
	"cosplay/internal/resource"
)

// MPS finds and runs the MPS daemons of a host's GPUs, as the user of the sessions. A GPU has its folder for all projects
// of that user with the same ledger, which gives the whole of it to one project at a time.
func (h *Host) MPS(prior resource.Prior) mps.Service {
	base, as := mpsBase()
	sum := sha256.Sum256([]byte(cmp.Or(h.LedgerDir(), h.Folders)))
	s := mps.Service{Dir: filepath.Join(base, hex.EncodeToString(sum[:4])), As: as}
	for _, g := range prior.GPUs {
		for _, m := range g.All() {
			if g.Host == h.Config.Name {
				s.Known = append(s.Known, m.Folder)
			}
		}
	}
	return s
}

// mpsBase is the folder of all MPS daemons of a user. Root does not write into the home of another user.
func mpsBase() (dir string, as *syscall.Credential) {
	if who, err := Invoker(); err == nil && os.Geteuid() == 0 && who.UID != 0 {
		return filepath.Join(ledger.SystemDir, "mps"), &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		state = filepath.Join(HomeDir(), ".local", "state")
	}
	return filepath.Join(state, "cosplay", "mps"), nil
}
