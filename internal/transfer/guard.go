package transfer

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// revise passes an archive on, with its headers changed.
func revise(content io.Reader, change func(*tar.Header) error) io.ReadCloser {
	revised, out := io.Pipe()
	go func() { _ = out.CloseWithError(pass(tar.NewReader(content), tar.NewWriter(out), change)) }()
	return revised
}

func pass(from *tar.Reader, to *tar.Writer, change func(*tar.Header) error) error {
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return to.Close()
		}
		if err == nil {
			plain(h)
			err = change(h)
		}
		if err == nil {
			err = to.WriteHeader(h)
		}
		if err == nil {
			_, err = io.Copy(to, from)
		}
		if err != nil {
			return err
		}
	}
}

// plain makes a header writable: the reader has filled the holes of a sparse file, and guesses the format.
func plain(h *tar.Header) {
	h.Format = tar.FormatPAX
	if h.Typeflag == tar.TypeGNUSparse {
		h.Typeflag = tar.TypeReg
	}
}

// capability is the record of a file's capabilities.
const capability = "SCHILY.xattr.security.capability"

// disown gives an entry to a user, without what lets its program act as its owner.
func disown(h *tar.Header, uid, gid int) {
	h.Uid, h.Gid, h.Uname, h.Gname = uid, gid, "", ""
	if h.Typeflag == tar.TypeReg {
		h.Mode &^= 0o6000
		delete(h.PAXRecords, capability)
	}
}

// guard checks an archive of a session: programs in a session, and another machine, write what they want into it. Everything has
// to be below the name that the user expects, without a detour over a symbolic link.
type guard struct {
	folder string // of this machine, into which it is extracted; "" where that is in a session
	name   string // first part of every name; "." where the folder itself gets the content
	links  map[string]bool
	solid  map[string]bool // folders that are known to be no links
}

// guardOf is the guard of a copy; nil where it needs none, since the files are of this machine.
func guardOf(from, to End, folder, name string) *guard {
	if _, own := from.Side.(Files); own {
		return nil
	}
	if _, here := to.Side.(Files); !here {
		folder = ""
	}
	return &guard{folder: folder, name: name, links: map[string]bool{}, solid: map[string]bool{}}
}

func (g *guard) check(h *tar.Header) error {
	if g == nil {
		return nil
	}
	name, err := g.within(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeChar, tar.TypeBlock:
		return fmt.Errorf("%s is a device, which cosplay does not copy out of a session", h.Name)
	case tar.TypeSymlink:
		g.links[name] = true
	case tar.TypeLink:
		if _, err := g.within(h.Linkname); err != nil {
			return fmt.Errorf("%s is a hard link: %w", h.Name, err)
		}
	}
	return nil
}

// within is a name without ambiguity, if it is below the expected one and no folder on its way is a symbolic link.
func (g *guard) within(name string) (string, error) {
	first, _, _ := strings.Cut(name, "/")
	if first != g.name || slices.Contains(strings.Split(name, "/"), "..") {
		return "", fmt.Errorf("the archive has %q, which is outside of what was asked for; nothing of it was written there", name)
	}
	name = path.Clean(name)
	return name, g.reached(path.Dir(name))
}

// reached fails if a folder, or one above it, is a symbolic link.
func (g *guard) reached(dir string) error {
	if dir == "." || g.solid[dir] {
		return nil
	}
	if err := g.reached(path.Dir(dir)); err != nil {
		return err
	}
	if g.links[dir] || g.folder != "" && isLink(filepath.Join(g.folder, dir)) {
		return fmt.Errorf("the archive leads through %s, which is a symbolic link; nothing was written there", filepath.Join(g.folder, dir))
	}
	g.solid[dir] = true
	return nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
