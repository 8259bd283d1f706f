package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cosplay/internal/durable"
	"cosplay/internal/plan"
)

// savedPlan is a plan on disk. The checksum is no seal; it detects that a plan was edited
// after it was shown.
type savedPlan struct {
	Checksum string          `json:"checksum"`
	Plan     json.RawMessage `json:"plan"`
}

// checksum is that of a plan's JSON, however it is laid out.
func checksum(data json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// savePlan writes a plan for a later apply. It may contain secrets of the configuration,
// so only the user can read it.
func savePlan(path string, p *plan.Plan) error {
	content, err := json.Marshal(p.Saved(Version))
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(savedPlan{Checksum: checksum(content), Plan: content}, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("saving the plan: %w", err)
	}
	return nil
}

// mayOverwrite keeps --out from destroying a file that is no saved plan. "" is no file.
func mayOverwrite(path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	var saved savedPlan
	if err != nil || json.Unmarshal(data, &saved) != nil || saved.Checksum == "" {
		return fmt.Errorf("%s is there and is no saved plan: it stays as it is. Name another file with --out", path)
	}
	return nil
}

// loadPlan reads a saved plan.
func loadPlan(path string) (*plan.Saved, error) {
	const makeOne = "make one with cosplay plan --out FILE"
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; %s", path, makeOne)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w; %s", err, makeOne)
	}
	var (
		saved savedPlan
		p     plan.Saved
	)
	switch {
	case json.Unmarshal(data, &saved) != nil || saved.Checksum == "":
		return nil, fmt.Errorf("%s is not a saved plan; %s", path, makeOne)
	case checksum(saved.Plan) != saved.Checksum:
		return nil, fmt.Errorf("%s was changed after it was saved, so it is not the plan that was shown; %s", path, makeOne)
	}
	err = json.Unmarshal(saved.Plan, &p)
	if p.FormatVersion != plan.FormatVersion {
		return nil, fmt.Errorf("%s has format version %d, this cosplay reads %d: another version of cosplay saved it; %s", path, p.FormatVersion, plan.FormatVersion, makeOne)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", path, err, makeOne)
	}
	return &p, nil
}
