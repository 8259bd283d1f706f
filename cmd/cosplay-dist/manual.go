package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra/doc"

	"cosplay/internal/cli"
	"cosplay/internal/durable"
	"cosplay/internal/pattern"
)

// writeManual writes the man page of each command.
func writeManual(folder string) error {
	day, err := builtOn()
	if err != nil {
		return err
	}
	root := cli.Command()
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "cosplay " + cli.Version, Manual: "cosplay", Date: &day}
	err = os.MkdirAll(folder, 0o755)
	for queue := append(root.Commands()[:0:0], root); len(queue) > 0; queue = queue[1:] {
		c := queue[0]
		if !c.IsAvailableCommand() && c != root {
			continue
		}
		var page bytes.Buffer
		name, own := strings.ReplaceAll(c.CommandPath(), " ", "-"), header
		own.Title = strings.ToUpper(name)
		c.Long = strings.ReplaceAll(c.Long, "\n  ", "\n    ") // examples are code, whose lines stay
		err = errors.Join(err, doc.GenMan(c, &own, &page), durable.WriteFile(filepath.Join(folder, name+".1"), tidied(page.String(), day), 0o644))
		queue = append(queue, c.Commands()...)
	}
	return err
}

// option is an option with the line below it, as cobra writes them.
var option = pattern.Of(`(?m)^(?:\.PP\n)?(\\fB-.*)\n\t`)

// tidied corrects what cobra writes: the date is a day, and options are a list, so that their long lines are indented.
func tidied(page string, day time.Time) []byte {
	page = strings.Replace(page, day.Format(`"Jan 2006"`), day.Format(`"2006-01-02"`), 1)
	return []byte(option().ReplaceAllString(page, ".TP\n$1\n"))
}

// builtOn is the day of SOURCE_DATE_EPOCH, or today.
func builtOn() (time.Time, error) {
	typed := os.Getenv("SOURCE_DATE_EPOCH")
	if typed == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(typed, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
