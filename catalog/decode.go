package catalog

import (
	"fmt"

	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"cosplay/internal/resource"
)

// targetBlock is a target in a file. Its values are the fields of resource.Target in the same order, so that the
// compiler rejects a missing field.
type targetBlock struct {
	Note    string        `hcl:"note,optional"` // values with another source, or doubtful ones
	Figures targetFigures `hcl:",remain"`
}

type targetFigures struct {
	Key               string
	Name              string   `hcl:"name"`
	Aliases           []string `hcl:"aliases,optional"`
	Architecture      string
	ComputeCapability string  `hcl:"compute_capability"`
	SMs               int     `hcl:"sms"`
	BoostMHz          int     `hcl:"boost_mhz"`
	MemoryMiB         int     `hcl:"memory_mib"`
	BusBits           int     `hcl:"bus_bits"`
	BandwidthGBs      float64 `hcl:"bandwidth_gbs"`
	L2MiB             float64 `hcl:"l2_mib"`
	PowerW            int     `hcl:"power_w"`
	PCIeGeneration    int     `hcl:"pcie_generation"`
	Year              int     `hcl:"year"`

	FP32TFLOPS       float64  `hcl:"fp32_tflops"`
	TensorFP16TFLOPS float64  `hcl:"tensor_fp16_tflops,optional"`
	TensorBF16TFLOPS float64  `hcl:"tensor_bf16_tflops,optional"`
	TensorFP8TFLOPS  float64  `hcl:"tensor_fp8_tflops,optional"`
	TensorINT8TOPS   float64  `hcl:"tensor_int8_tops,optional"`
	TensorTypes      []string `hcl:"tensor_types,optional"`
	Source           string   `hcl:"source"`
	Fraction         float64
}

func decodeTarget(generation string, block *hclsyntax.Block) resource.Target {
	var b targetBlock
	decode(block, &b)
	t := resource.Target(b.Figures)
	t.Key, t.Architecture = block.Labels[0], generation
	if b.Note != "" {
		t.Source += "; " + b.Note
	}
	return t
}

// hostBlock is a host in a file.
type hostBlock struct {
	Aliases  []string     `hcl:"aliases,optional"`
	Clocks   clocks       `hcl:"clocks_mhz"`
	Power    power        `hcl:"power_w"`
	Profiles []profile    `hcl:"profiles,optional"`
	Source   string       `hcl:"source"`
	Unsure   string       `hcl:"unsure,optional"`
	Figures  modelFigures `hcl:",remain"`
}

// modelFigures has the fields of resource.Model in the same order. decodeHost sets those without a tag.
type modelFigures struct {
	Name              string  `hcl:"name"`
	ComputeCapability string  `hcl:"compute_capability"`
	SMs               int     `hcl:"sms"`
	MemoryMiB         int     `hcl:"memory_mib"`
	BandwidthGBs      float64 `hcl:"bandwidth_gbs"`
	L2MiB             float64 `hcl:"l2_mib"`
	ClocksMHz         []int

	PowerMinMW, PowerDefaultMW, PowerMaxMW int

	FP32PerSM     float64 `hcl:"fp32_per_sm"`
	TensorPerSM   float64 `hcl:"tensor_per_sm"`
	MemorySlices  int     `hcl:"memory_slices,optional"`
	ComputeSlices int     `hcl:"compute_slices,optional"`
	Profiles      []resource.Profile
}

type clocks struct {
	Min  int     `cty:"min"`
	Max  int     `cty:"max"`
	Step float64 `cty:"step"`
}

type power struct {
	Min     int `cty:"min"`
	Default int `cty:"default"`
	Max     int `cty:"max"`
}

type profile struct {
	Name          string `cty:"name"`
	ID            int    `cty:"id"`
	SMs           int    `cty:"sms"`
	MemoryMiB     int    `cty:"memory_mib"`
	MemorySlices  int    `cty:"memory_slices"`
	ComputeSlices int    `cty:"compute_slices"`
	MaxInstances  int    `cty:"max_instances"`
	Starts        []int  `cty:"starts"`
}

func decodeHost(_ string, block *hclsyntax.Block) Host {
	var b hostBlock
	decode(block, &b)
	h := Host{Key: block.Labels[0], Aliases: b.Aliases, Source: b.Source, Unsure: b.Unsure, Model: resource.Model(b.Figures)}
	h.Model.ClocksMHz = clockGrid(b.Clocks.Min, b.Clocks.Max, b.Clocks.Step)
	h.Model.PowerMinMW, h.Model.PowerDefaultMW, h.Model.PowerMaxMW = 1000*b.Power.Min, 1000*b.Power.Default, 1000*b.Power.Max
	for _, p := range b.Profiles {
		h.Model.Profiles = append(h.Model.Profiles, resource.Profile(p))
	}
	return h
}

func decode(block *hclsyntax.Block, into any) {
	if diags := gohcl.DecodeBody(block.Body, nil, into); diags.HasErrors() {
		panic(fmt.Errorf("catalog: %w", diags))
	}
}
