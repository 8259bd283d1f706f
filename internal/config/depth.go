package config

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"cosplay/internal/pattern"
)

// Limits of the files, which hold before the HCL library parses them. Its parser and its evaluation recurse for each
// bracket and operator, and Go cannot recover from a full stack.
const (
	MaxSource = 4 << 20   // bytes of all files together, those with values of variables included
	maxWords  = 1_000_000 // words and signs of a file
	maxDepth  = 500       // brackets within each other, and operators that wait for their operands
)

var (
	vastExponent = pattern.Of(`[eE][-+]?0*[1-9]\d{4,}$`)
	operators    = []hclsyntax.TokenType{hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPlus, hclsyntax.TokenMinus,
		hclsyntax.TokenPercent, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual, hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq,
		hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenBang,
		hclsyntax.TokenQuestion, hclsyntax.TokenDot}
	opening = []hclsyntax.TokenType{hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
		hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl}
	closing = []hclsyntax.TokenType{hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
		hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd}
)

// tooDeep reports the first place in a source that nests more deeply than the limit, or has too many words or digits.
func tooDeep(name string, src []byte, start hcl.Pos, lex func([]byte, string, hcl.Pos) (hclsyntax.Tokens, hcl.Diagnostics)) hcl.Diagnostics {
	switch end, plain := scan(src); {
	case end < len(src):
		return hcl.Diagnostics{overLimit(oneCharacter(name, src, end),
			limitError{"the number of words and signs up to here", fmt.Sprint(maxWords), "Divide the file, or write fewer blocks with count or for_each"})}
	case plain:
		return nil
	}
	words, _ := lex(src, name, start)
	type level struct {
		base  int  // the depth without the operators that wait in it
		lines bool // a line end separates what is in it
	}
	levels, depth := []level{{lines: true}}, 0 // the last level is the innermost bracket
	for i, t := range words {
		top := levels[len(levels)-1]
		switch {
		case slices.Contains(opening, t.Type):
			if t.Type == hclsyntax.TokenTemplateControl && i+1 < len(words) {
				switch string(words[i+1].Bytes) {
				case "if", "for":
					depth++
				case "endif", "endfor":
					depth = max(top.base, depth-1)
				}
			}
			depth++
			levels = append(levels, level{depth, t.Type == hclsyntax.TokenOBrace})
		case slices.Contains(closing, t.Type) && len(levels) > 1:
			depth, levels = top.base-1, levels[:len(levels)-1]
			if t.Type == hclsyntax.TokenCBrack { // perhaps an index
				depth++
			}
		case slices.Contains(operators, t.Type):
			depth++
		case t.Type == hclsyntax.TokenComma, t.Type == hclsyntax.TokenNewline && top.lines:
			depth = top.base
		case t.Type == hclsyntax.TokenNumberLit && isVastNumber(string(t.Bytes)):
			return hcl.Diagnostics{overLimit(t.Range, vastNumber)}
		}
		if depth > maxDepth {
			return hcl.Diagnostics{mistake(t.Range, "nested too deeply",
				"More than %d brackets and operators are open here, the limit of cosplay. Close them, or put parts of the expression into locals.", maxDepth)}
		}
	}
	return nil
}

// scan returns the offset at which a source has more words and signs than the limit, otherwise its length. A plain
// source is within the limits of tooDeep whatever its words are: what nests has a sign each, and a vast number has five
// digits in a row.
func scan(src []byte) (end int, plain bool) {
	words, signs, digits, inWord := 0, 0, 0, false
	plain = true
	for i, c := range src {
		letter := isLetter(c)
		if c != ' ' && c != '\t' && !(letter && inWord) {
			if words++; words > maxWords {
				return i, false
			}
		}
		if inWord = letter; !letter && c != ' ' && c != '\n' {
			signs++
		}
		if digits++; c < '0' || c > '9' {
			digits = 0
		}
		plain = plain && digits < 5 && signs <= maxDepth
	}
	return len(src), plain
}

// isLetter reports whether a byte is of a letter, or a digit.
func isLetter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// tooLarge reports the file with which the configuration exceeds the limit.
func tooLarge(name string) *hcl.Diagnostic {
	return overLimit(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos},
		limitError{"the configuration up to this file", mebi(MaxSource), "Write fewer blocks with count or for_each, and keep long texts in files"})
}

var vastNumber = limitError{"the number", "10,000 digits", "Write one that can be counted with"}

func isVastNumber(digits string) bool {
	return len(digits) > 10_000 || vastExponent().MatchString(digits)
}

// tooDeepInJSON does the same for a file in JSON, the templates in its texts included.
func tooDeepInJSON(name string, src []byte) *hcl.Diagnostic {
	if end, _ := scan(src); end < len(src) {
		return tooDeep(name, src, hcl.InitialPos, nil)[0]
	}
	tokens := stdjson.NewDecoder(bytes.NewReader(src))
	tokens.UseNumber()
	depth := 0
	for {
		before := int(tokens.InputOffset())
		token, err := tokens.Token()
		if err != nil {
			return nil // jsonSyntax reports the error
		}
		begins := before + max(0, bytes.IndexAny(src[before:], `"[]{}-0123456789`))
		switch token := token.(type) {
		case stdjson.Delim:
			if depth++; token == '}' || token == ']' {
				depth -= 2
			}
			if depth > maxDepth {
				at := oneCharacter(name, src, begins)
				return mistake(at, "nested too deeply", "More than %d brackets are open here, the limit of cosplay. Close them.", maxDepth)
			}
		case stdjson.Number:
			if isVastNumber(token.String()) {
				return overLimit(oneCharacter(name, src, begins), vastNumber)
			}
		case string:
			if diags := tooDeep(name, []byte(token), hcl.InitialPos, hclsyntax.LexTemplate); diags.HasErrors() {
				d := diags[0]
				d.Subject = oneCharacter(name, src, begins).Ptr()
				return d
			}
		}
	}
}
