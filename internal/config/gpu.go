package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"cosplay/internal/pattern"
	"cosplay/internal/resource"
)

// GPUSelector identifies a physical GPU as the user wrote it. One of Index, UUID and PCI is set.
type GPUSelector struct {
	Index *int
	UUID  string // "GPU-8f...", or the beginning that the user typed
	PCI   string // as NVML writes it: "00000000:84:00.0"

	Range hcl.Range // where it is in the files
}

// String returns the selector in readable form.
func (s GPUSelector) String() string {
	if s.Index != nil {
		return strconv.Itoa(*s.Index)
	}
	return s.UUID + s.PCI
}

// MarshalText writes the selector as String does.
func (s GPUSelector) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Matches reports whether the selector identifies this GPU of its host.
func (s GPUSelector) Matches(g resource.GPU) bool {
	switch {
	case s.Index != nil:
		return *s.Index == g.Index
	case s.UUID != "":
		return len(g.UUID) >= len(s.UUID) && strings.EqualFold(g.UUID[:len(s.UUID)], s.UUID)
	}
	return s.PCI != "" && strings.EqualFold(s.PCI, g.PCI)
}

const (
	maxGPUIndex = 1023
	gpuAdvice   = `Write its index (0), its UUID ("GPU-8f...") or its PCI address ("0000:84:00.0"); nvidia-smi -L lists them.`
)

var (
	gpuUUID    = pattern.Of(`^(?i:GPU)-([0-9a-fA-F][0-9a-fA-F-]{3,35})$`)
	pciAddress = pattern.Of(`^(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$`)
	digits     = pattern.Of(`^\d+$`)
)

// ParseGPU reads a selector from the command line.
func ParseGPU(typed string) (GPUSelector, error) {
	if index, err := strconv.Atoi(typed); err == nil && index >= 0 {
		return GPUSelector{Index: &index}, nil
	}
	if s, ok := readGPU(typed); ok {
		return s, nil
	}
	return GPUSelector{}, fmt.Errorf("%q does not name a GPU. %s", typed, gpuAdvice)
}

func readGPU(typed string) (GPUSelector, bool) {
	if m := gpuUUID().FindStringSubmatch(typed); m != nil {
		return GPUSelector{UUID: "GPU-" + strings.ToLower(m[1])}, true
	}
	if m := pciAddress().FindStringSubmatch(typed); m != nil {
		return GPUSelector{PCI: strings.ToUpper(fmt.Sprintf("%08s:%s", m[1], m[2]))}, true
	}
	return GPUSelector{}, false
}

func (v value) selector() (GPUSelector, bool) {
	s := GPUSelector{Range: v.expr.Range()}
	if !v.typed(isOneOf(v.Type(), cty.Number, cty.String), v.name()+" does not name a GPU", "This is %s. %s", v.kind(), gpuAdvice) {
		return s, false
	}
	if v.Type() == cty.Number || v.Type() == cty.String && digits().MatchString(v.AsString()) {
		index, ok := v.whole(0, maxGPUIndex, "the index of a GPU, as nvidia-smi counts them,")
		s.Index = &index
		return s, ok
	}
	typed := v.AsString()
	if read, ok := readGPU(typed); ok {
		read.Range = s.Range
		return read, true
	}
	if strings.HasPrefix(typed, "MIG-") {
		v.wrong("a slice is not a GPU", "%q names a MIG slice. Name the physical GPU. %s", typed, gpuAdvice)
	} else {
		v.wrong(fmt.Sprintf("%q does not name a GPU", typed), gpuAdvice)
	}
	return s, false
}
