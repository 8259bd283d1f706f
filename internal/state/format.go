package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"cosplay/internal/checksum"
	"cosplay/internal/resource"
)

// formatVersion increases when a field changes its meaning; read then has to accept the previous version.
const formatVersion = 4

// head is the part that every version of the format has: it shows whether a file is intact, and whether it is too
// new. Version 1 had no checksum.
type head struct {
	FormatVersion  int    `json:"format_version"`
	CosplayVersion string `json:"cosplay_version"`
	Checksum       string `json:"checksum"` // of the file's bytes, with this field empty
}

// file is the state on disk. The tags of resource.Prior are the format: a copy of its types
// would double them. testdata/fields.txt lists what they make of it, and a test fails where
// a tag changes that. Only targets and fits differ: see lists.go.
type file struct {
	head
	resource.Prior
	lists
}

// encode writes a state in the current format.
func encode(p resource.Prior, version string) ([]byte, error) {
	f := file{head: head{FormatVersion: formatVersion, CosplayVersion: version}, Prior: p}
	names := f.collecting()
	// The options are those of encoding/json, which has written all versions.
	data, err := jsonv2.Marshal(f, jsonv1.DefaultOptionsV1(), jsontext.WithIndent("  "), jsonv2.WithMarshalers(names))
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	return checksum.Fill(data), nil
}

// decode reads a state of any version up to the current one.
func decode(data []byte) (resource.Prior, *Refusal) {
	if len(bytes.TrimSpace(data)) == 0 {
		return resource.Prior{}, refusal(Empty, "it is empty")
	}
	var f file
	// Growing step by step would copy all sessions several times. A session that cosplay wrote has about 1 KiB.
	f.Sessions = slices.Grow(f.Sessions, len(data)>>10)
	misread := f.read(data) // parsing takes a large part of the time of every command
	if syntax, is := errors.AsType[*jsontext.SyntacticError](misread); is {
		if errors.Is(syntax, io.ErrUnexpectedEOF) {
			return resource.Prior{}, refusal(Truncated, fmt.Sprintf("it is truncated after %d bytes", len(data)))
		}
		return resource.Prior{}, refusal(NotJSON, fmt.Sprintf("it is not JSON: byte %d: %v", syntax.ByteOffset+1, syntax.Err))
	}
	if misread != nil {
		_ = jsonv2.Unmarshal(data, &f.head) // parsing may have stopped before the head
	}
	if refusal := f.head.judge(data); refusal != nil {
		return resource.Prior{}, refusal
	}
	switch {
	case misread != nil:
		return resource.Prior{}, refusal(Altered, "it was changed by something other than cosplay: "+misread.Error())
	case f.Lineage == "":
		return resource.Prior{}, refusal(NoLineage, "it has no lineage, so its project is unknown")
	}
	return f.Prior, orderly(f.Prior)
}

// judge checks that this cosplay can read the file and that the file is intact.
func (h head) judge(data []byte) *Refusal {
	summed := checksum.Is(h.Checksum)
	fits := summed && checksum.Of(data, h.Checksum) == h.Checksum
	switch {
	case h.FormatVersion > formatVersion && summed && !fits:
		return refusal(Altered, fmt.Sprintf("it has format version %d, which only a newer cosplay writes, but its checksum does not fit: it was damaged", h.FormatVersion))
	case h.FormatVersion > formatVersion:
		return refusal(Newer, fmt.Sprintf("it has format version %d and was written by a newer cosplay (%s); this one reads up to %d", h.FormatVersion, h.CosplayVersion, formatVersion))
	case summed && !fits:
		return refusal(Altered, "its checksum does not fit: a part of it was changed since it was written")
	case h.FormatVersion < 1:
		return refusal(NotAState, "it has no format_version, so it is not a state of cosplay")
	case h.FormatVersion > 1 && !summed:
		return refusal(Altered, "its checksum is missing: it was changed since it was written")
	}
	return nil
}

// read reads a file of any version. Before version 2 there was no checksum; before 3 each session had its target, and
// before 4 its fit.
func (f *file) read(data []byte) error {
	err := jsonv2.Unmarshal(data, f, jsonv2.WithUnmarshalers(named))
	if err == nil && f.FormatVersion >= targetsListed {
		err = f.give(f.Sessions, f.FormatVersion)
	}
	return err
}

// orderly checks the order of sessions, on which searches rely.
func orderly(p resource.Prior) *Refusal {
	for i, s := range p.Sessions {
		switch {
		case s.Address.Name == "":
			return refusal(Altered, fmt.Sprintf("it was changed by something other than cosplay: session %d in it has no address", i+1))
		case i > 0 && p.Sessions[i-1].Address.Compare(s.Address) >= 0:
			return refusal(Altered, fmt.Sprintf("it was changed by something other than cosplay: %s is twice in it, or in the wrong place", s.Address))
		}
	}
	return nil
}
