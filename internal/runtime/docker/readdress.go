package docker

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cosplay/internal/resource"
	"cosplay/internal/runtime"
)

// Readdress writes the address that a session has now into its folder, for a state that is rebuilt: the labels of a
// container cannot be changed. A folder that does not exist is no error.
func (r Runtime) Readdress(session string, to resource.Address) error {
	if err := runtime.CheckSession(session); err != nil {
		return err
	}
	path := filepath.Join(r.folder(session), sessionFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s resource.Session
	if err != nil || json.Unmarshal(data, &s) != nil || s.ID != session {
		return err
	}
	s.Address = to
	if data, err = json.Marshal(s); err != nil {
		return err
	}
	return replace(path, data, 0o600)
}
