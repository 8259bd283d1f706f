// Package hostfile reads and writes the file of an exported host: what cosplay has read of its GPUs, so that another
// machine can plan for it. Pure.
package hostfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"cosplay/internal/checksum"
	"cosplay/internal/public"
	"cosplay/internal/resource"
)

// version is the format of the file. It increases when a field is removed or changes its meaning; then Decode has to
// convert files of the versions before.
const version = 1

const kind = "host"

// Ending tells the name of a file from a description like "8 x h200".
const Ending = ".json"

// Names reports whether a description of a host is the name of a file.
func Names(spec string) bool { return strings.HasSuffix(spec, Ending) }

// Encode writes a host. It refuses what Decode would refuse, such as a process in a slice that was removed while the host
// was read.
func Encode(h resource.Host, cosplay string) ([]byte, error) {
	if err := check(h); err != nil {
		return nil, fmt.Errorf("host %s cannot be exported: %w", h.Name, err)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(exported(h, cosplay))
	return checksum.Fill(text.Bytes()), err
}

// Decode reads a host, without a name. The error says what is wrong with the file, to follow its name, and how to fix it.
func Decode(data []byte) (resource.Host, error) {
	e, err := parse(data)
	if err == nil {
		err = judge(e, data)
	}
	if err != nil {
		return resource.Host{}, err
	}
	h := host(e)
	if err := check(h); err != nil {
		return resource.Host{}, damaged("%w", err)
	}
	return h, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("is damaged: %w. Fix: run cosplay host export again on the machine that it describes", fmt.Errorf(format, args...))
}

func parse(data []byte) (e public.HostExport, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return e, damaged("it is empty")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	err = decoder.Decode(&e)
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return e, damaged("it is truncated after %d bytes", len(data))
	case errors.As(err, &syntax):
		return e, damaged("line %d is not JSON: %w", line(data, syntax.Offset), err)
	case errors.As(err, &typed) && e.Kind == kind:
		return e, damaged("line %d: %s cannot be a %s", line(data, typed.Offset), typed.Field, typed.Value)
	case err != nil && e.Kind == kind:
		return e, damaged("%w", err)
	}
	if rest := bytes.TrimSpace(data[decoder.InputOffset():]); err == nil && len(rest) > 0 {
		return e, damaged("line %d follows the end of the export", line(data, int64(len(data)-len(rest))))
	}
	return e, nil
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

// judge checks that this cosplay can read the file and that the file is intact.
func judge(e public.HostExport, data []byte) error {
	intact := checksum.Is(e.Checksum) && checksum.Of(data, e.Checksum) == e.Checksum
	switch {
	case e.Kind != kind:
		return errors.New("is not an exported host. Fix: name a file that cosplay host export has written")
	case !intact:
		return damaged("its checksum does not fit, so a part of it was changed since it was written; to plan for a host that is set differently, " +
			"change the simulated host with cosplay sim")
	case e.FormatVersion > version:
		return fmt.Errorf("has format version %d, which a newer cosplay (%s) wrote; this one reads up to %d. Fix: install that cosplay here, or export the host with this one",
			e.FormatVersion, e.Cosplay, version)
	case e.FormatVersion < 1:
		return damaged("it has no format_version")
	}
	return nil
}
