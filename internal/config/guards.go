package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"

	"cosplay/internal/pattern"
)

// guards refuse arguments, by the name of the function, with which a single call would exceed a limit before its
// result can be measured.
var guards = map[string]func(args []cty.Value, s size) error{
	"csvdecode": func(args []cty.Value, _ size) error {
		if text := args[0].AsString(); strings.Count(text, ",")+strings.Count(text, "\n") > maxParts {
			return tooMany("the result", maxParts)
		}
		return nil
	},
	"format":     func(args []cty.Value, s size) error { return formatted(args, s, 1) },
	"formatlist": func(args []cty.Value, s size) error { return formatted(args, s, longestList(args[1:])) },
	"indent": func(args []cty.Value, _ size) error {
		spaces, _ := args[0].AsBigFloat().Int64()
		return resultText(int(min(spaces, maxText+1)), strings.Count(args[1].AsString(), "\n"))
	},
	"join": func(args []cty.Value, s size) error {
		return resultText(len(args[0].AsString()), s.elements)
	},
	"jsondecode": func(args []cty.Value, _ size) error {
		return decodable(json.Unmarshal([]byte(args[0].AsString()), new(json.RawMessage)))
	},
	"replace": func(args []cty.Value, s size) error {
		text, part, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
		if strings.HasPrefix(part, "/") {
			if err := apart(s); err != nil {
				return err
			}
			return resultText(len(with)+strings.Count(with, "$")*len(text), matches(part, text))
		}
		return resultText(len(with), strings.Count(text, part))
	},
	"setproduct": func(args []cty.Value, _ size) error {
		total := len(args)
		for _, a := range args {
			if total *= lengthOf(a); total > maxParts {
				return tooMany("the product", maxParts)
			}
		}
		return nil
	},
	"trim": func(args []cty.Value, _ size) error {
		if len(args[1].AsString()) > maxTrimmed {
			return limitError{"the set of characters to remove", fmt.Sprintf("%d bytes", maxTrimmed), "Name each character once"}
		}
		return nil
	},
	"yamldecode": func(args []cty.Value, _ size) error {
		var all any
		return decodable(yaml.Unmarshal([]byte(args[0].AsString()), &all))
	},
}

// takesApart has the functions that make elements of a text.
var takesApart = map[string]bool{"csvdecode": true, "jsondecode": true, "regexall": true, "split": true, "yamldecode": true}

// apart refuses a text that is too long to take apart.
func apart(s size) error {
	if s.longest > maxDecoded {
		return limitError{"the text", mebi(maxDecoded) + " for a function that takes it apart", "Make it shorter"}
	}
	return nil
}

// decodable refuses what the limits of another decoder refuse. Other errors are for the function itself to report.
func decodable(err error) error {
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "max depth"):
		return limitError{"the nesting of the text", fmt.Sprintf("%d levels", maxNested), "Make it flatter"}
	case strings.Contains(err.Error(), "excessive aliasing"):
		return tooMany("the value, with its aliases written out,", maxParts)
	}
	return nil
}

// resultText refuses a result that contains a text many times.
func resultText(length, times int) error {
	if times > 0 && length > maxText/times {
		return tooLong("the result")
	}
	return nil
}

// verb matches what a format replaces, without the last letter, and widths its width and its precision.
var (
	verb   = pattern.Of(`%[^a-zA-Z%]*`)
	widths = pattern.Of(`\d+`)
)

const (
	maxWidth   = 999
	numberText = 64 // bytes of a number in most formats
)

func formatted(args []cty.Value, s size, times int) error {
	if args[0].Type() != cty.String {
		return nil
	}
	format := args[0].AsString()
	length := len(format)
	for _, v := range verb().FindAllString(format, -1) {
		length += s.longest + numberText
		for _, text := range widths().FindAllString(v, -1) {
			width, err := strconv.Atoi(text)
			if err != nil || width > maxWidth {
				return limitError{"a width in the format", strconv.Itoa(maxWidth), "Write a smaller one"}
			}
			length += width
		}
	}
	return resultText(length, times)
}

func lengthOf(v cty.Value) int {
	if !v.CanIterateElements() {
		return 1
	}
	return v.LengthInt()
}

func longestList(lists []cty.Value) int {
	longest := 1
	for _, l := range lists {
		longest = max(longest, lengthOf(l))
	}
	return longest
}

// matches returns how often a regular expression between slashes matches.
func matches(between, text string) int {
	pattern, err := regexp.Compile(strings.Trim(between, "/"))
	if err != nil {
		return 0 // the function itself reports the error
	}
	return len(pattern.FindAllStringIndex(text, -1))
}
