//go:build cgo && linux

package disguise

// #include "figures.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"cosplay/driver"
	"cosplay/internal/shared"
)

// beside returns the facade of a library as it is in all session folders: its paths begin where it is.
func beside(library string) func() (*shared.File, error) {
	return sync.OnceValues(func() (*shared.File, error) {
		content, err := Facade(library, C.FACADE_ORIGIN+"/../"+RealDir+"/"+library, C.FACADE_ORIGIN+"/../"+FiguresFile)
		return shared.NewFile(library, content, 0o755), err
	})
}

// neededMark is the placeholder for the library that a facade needs: a mark padded with dots to the length of the
// longest path.
var neededMark = C.FACADE_NEEDED_MARK + strings.Repeat(".", C.FACADE_PATH_SIZE-1-len(C.FACADE_NEEDED_MARK))

// Facade returns the facade of driver.NVML or driver.CUDA, for programs that find the driver's library and the figures
// file at these absolute paths, or at paths from the facade's own folder, with the usage file beside the figures file.
// The files need not exist yet.
func Facade(of, realLibrary, figures string) ([]byte, error) {
	library, err := driver.Library(facades[of].file)
	if err != nil {
		return nil, err
	}
	library = bytes.Clone(library)
	for mark, to := range map[string]string{
		neededMark:            realLibrary,
		C.FACADE_DRIVER_MARK:  realLibrary,
		C.FACADE_FIGURES_MARK: figures,
		C.FACADE_USAGE_MARK:   figures[:strings.LastIndex(figures, "/")+1] + UsageFile, // not cleaned: $ORIGIN/.. is a folder
	} {
		if !filepath.IsAbs(to) && !strings.HasPrefix(to, C.FACADE_ORIGIN+"/") || len(to) >= C.FACADE_PATH_SIZE {
			return nil, fmt.Errorf("the facade cannot take the path %q: it must be absolute and below %d bytes", to, C.FACADE_PATH_SIZE)
		}
		if err := overwrite(library, mark, to); err != nil {
			return nil, err
		}
	}
	return library, nil
}

func overwrite(library []byte, mark, path string) error {
	place := []byte(mark + "\x00")
	at := bytes.Index(library, place)
	if at < 0 || bytes.Count(library, place) != 1 || at+C.FACADE_PATH_SIZE > len(library) {
		return errors.New("a facade in this binary has no room for its paths; rebuild cosplay with make build")
	}
	room := library[at : at+C.FACADE_PATH_SIZE]
	clear(room)
	copy(room, path)
	return nil
}
