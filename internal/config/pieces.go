package config

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// pieceSize is the least size of a piece in bytes: two hundred words of the language.
const pieceSize = 1 << 10

// parsePieces parses a large file piece by piece, which takes two thirds of the time and half of the memory: the
// library copies its list of all words of a source again and again while the list grows. A piece ends after a line that
// is only "}", which ends a block of the file unless it is in a text or a comment. A piece that is not correct by
// itself, or has attributes, makes ok false: then only the file as a whole can be judged.
func parsePieces(name string, src []byte) (file *hcl.File, ok bool) {
	if end, _ := scan(src); len(src) <= pieceSize || end < len(src) {
		return nil, false
	}
	all, blocks, at := &hclsyntax.Body{}, contexts{}, hcl.InitialPos
	for at.Byte < len(src) {
		piece := src[at.Byte:]
		if len(piece) > pieceSize {
			if i := bytes.Index(piece[pieceSize:], []byte("\n}\n")); i >= 0 {
				piece = piece[:pieceSize+i+len("\n}\n")]
			}
		}
		marked := at.Byte > 0 && bytes.HasPrefix(piece, []byte("\ufeff")) // a byte order mark, which the library skips
		if marked || tooDeep(name, piece, at, hclsyntax.LexConfig).HasErrors() {
			return nil, false
		}
		parsed, diags := hclsyntax.ParseConfig(piece, name, at)
		body := parsed.Body.(*hclsyntax.Body)
		if len(diags) > 0 || len(body.Attributes) > 0 {
			return nil, false
		}
		if at.Byte == 0 {
			all.SrcRange = body.SrcRange
		}
		all.Blocks = append(all.Blocks, body.Blocks...)
		blocks = append(blocks, parsed)
		at = hcl.Pos{Line: at.Line + bytes.Count(piece, []byte("\n")), Column: 1, Byte: at.Byte + len(piece)}
		all.EndRange = body.EndRange
	}
	all.SrcRange.End = all.EndRange.End
	return &hcl.File{Body: all, Bytes: src, Nav: blocks}, true
}

// contexts are the pieces of a file. Each names the blocks in it for diagnostics.
type contexts []*hcl.File

// ContextString names the block around an offset in the file.
func (c contexts) ContextString(offset int) string {
	for _, piece := range c {
		if context := piece.Nav.(interface{ ContextString(int) string }).ContextString(offset); context != "" {
			return context
		}
	}
	return ""
}
