package render

import (
	"encoding/json"
	"io"
	"math"
	"strings"

	"cosplay/internal/terminal"
)

// JSON writes a value of package public, the same way for the same value.
func JSON(w io.Writer, v any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(terminal.Raw(w), terminal.JSON(text.String()))
	return err
}

// list makes an empty list of none, so that readers find [] and not null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// figure rounds a ratio or an error to six decimals; one that does not exist is null.
func figure(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	x = math.Round(x*1e6) / 1e6
	return &x
}

// watts turns mW into W.
func watts(mw int) float64 { return float64(mw) / 1000 }
