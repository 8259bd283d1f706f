package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// The API version and the kind of the parameters of a claim.
const (
	apiVersion = driverName + "/v1alpha1"
	kind       = "Session"
)

// parameters are the opaque parameters of a device class or of a claim. A claim is input of a stranger to a root process: no
// value reaches a configuration that does not match its form, since a text there can be an expression.
type parameters struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Target    string `json:"target,omitempty"`    // of cosplay's catalog: "2060"
	Fraction  string `json:"fraction,omitempty"`  // instead of a target: the node's own GPU with this part of its memory, "25%"
	Tolerance string `json:"tolerance,omitempty"` // of the fit: "10%"
	MaxError  string `json:"maxError,omitempty"`  // of the fit: "50%"
	Strict    bool   `json:"strict,omitempty"`    // frameworks refuse number formats that the target lacks
}

var (
	targetForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$`)
	percentForm = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,3})?%$`)
)

const maxParameters = 10 << 10 // bytes, as the API has it

// parse reads parameters, strictly: one value of another form or an unknown name is an error.
func parse(raw []byte) (p parameters, err error) {
	if len(raw) > maxParameters {
		return p, fmt.Errorf("the parameters have %d bytes, and at most %d are accepted", len(raw), maxParameters)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	if d.More() {
		return p, errors.New("the parameters are several values, and one is accepted")
	}
	if p.APIVersion != apiVersion || p.Kind != kind {
		return p, fmt.Errorf("the parameters are of %.80q, kind %.80q; this driver reads %q, kind %q", p.APIVersion, p.Kind, apiVersion, kind)
	}
	for _, value := range []struct {
		name, text string
		form       *regexp.Regexp
	}{{"target", p.Target, targetForm}, {"fraction", p.Fraction, percentForm}, {"tolerance", p.Tolerance, percentForm}, {"maxError", p.MaxError, percentForm}} {
		if value.text != "" && !value.form.MatchString(value.text) {
			return p, fmt.Errorf("%s cannot be %.80q", value.name, value.text)
		}
	}
	return p, nil
}

// of are the parameters for the device of a request: those of its class, and what of the claim the class leaves open.
func of(claim *resourceapi.ResourceClaim, request string) (p parameters, err error) {
	for _, source := range []resourceapi.AllocationConfigSource{resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim} {
		for _, c := range claim.Status.Allocation.Devices.Config {
			if c.Source != source || c.Opaque == nil || c.Opaque.Driver != driverName || !concerns(c.Requests, request) {
				continue
			}
			one, err := parse(c.Opaque.Parameters.Raw)
			if err != nil {
				return p, err
			}
			if p, err = p.with(one); err != nil {
				return p, err
			}
		}
	}
	if (p.Target == "") == (p.Fraction == "") {
		return p, fmt.Errorf("its device class and the claim have to name a target, like %s, or a fraction, and not both", `"target":"2060"`)
	}
	return p, nil
}

// concerns is whether parameters for these requests are for one, or for the request that it is a choice of: gpu/small of gpu.
func concerns(requests []string, one string) bool {
	of, _, _ := strings.Cut(one, "/")
	return len(requests) == 0 || slices.Contains(requests, one) || slices.Contains(requests, of)
}

// with adds what other parameters state. A value that is stated already cannot become another.
func (p parameters) with(o parameters) (parameters, error) {
	for _, v := range []struct {
		name string
		at   *string
		to   string
	}{{"target", &p.Target, o.Target}, {"fraction", &p.Fraction, o.Fraction}, {"tolerance", &p.Tolerance, o.Tolerance}, {"maxError", &p.MaxError, o.MaxError}} {
		if *v.at != "" && v.to != "" && *v.at != v.to {
			return p, fmt.Errorf("%s is %q by the device class, and the claim cannot change it to %q", v.name, *v.at, v.to)
		}
		if v.to != "" {
			*v.at = v.to
		}
	}
	p.Strict = p.Strict || o.Strict
	return p, nil
}
