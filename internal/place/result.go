package place

import (
	"cmp"
	"fmt"
	"slices"

	"cosplay/internal/fit"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

func (f *fleet) result() Result {
	cards := slices.Clone(f.cards)
	slices.SortFunc(cards, (*card).compare)
	r := Result{Warnings: f.warnings, Placed: make([]Placed, 0, len(f.requests))}
	starved := f.starved(cards)
	var dear prose.Groups[Warning]
	spreads := f.spreads(cards)
	for _, c := range cards {
		if len(c.occupants) == 0 {
			continue
		}
		slices.SortFunc(c.occupants, func(a, b occupant) int { return cmp.Compare(a.request, b.request) })
		r.GPUs = append(r.GPUs, c.setup())
		for _, s := range c.occupants {
			address := f.requests[s.request].Address
			p := Placed{Address: address, Want: f.requests[s.request].Want, Slice: s.slice, Alone: s.class.alone, Fit: c.fit(s)}
			if s.class.aloneError >= impossible {
				p.Alone = p.Fit
			}
			r.Placed = append(r.Placed, p)
			on := &spread{cards: []*card{c}, worst: c}
			if s.class.devices > 1 {
				on = spreads[address]
			}
			if w := f.price(c, s.class, p, on.cards); w.Text != "" && on.worst == c {
				dear.Add(w.Text, w)
			}
		}
		if w, is := f.crowded(c); is {
			r.Warnings = append(r.Warnings, w)
		}
		if c.Busy && c.isWhole() {
			on := prose.Each(c.occupants, func(s occupant) resource.Address { return f.requests[s.request].Address })
			r.Warnings = append(r.Warnings, Warning{Text: fmt.Sprintf("%s %s %s, which foreign processes use, too", resource.AddressNames(on, 3), prose.Choose(len(on), "has", "have"), c.label()),
				Sessions: on, Note: "foreign processes use the GPU, too", Far: true})
		}
	}
	slices.SortStableFunc(r.Placed, func(a, b Placed) int { return a.Address.Compare(b.Address) })
	for _, text := range dear.Texts {
		w := dear.Of[text][0]
		w.Sessions = prose.Each(dear.Of[text], func(one Warning) resource.Address { return one.Sessions[0] })
		w.Text = resource.AddressNames(w.Sessions, 3) + ": " + text
		r.Warnings = append(r.Warnings, w)
	}
	r.Refused = append(f.refusals(), starved...)
	return r
}

// price warns of a session that exceeds its tolerance because it shares a clock. The warning has no text if the
// difference is negligible.
func (f *fleet) price(c *card, cl *class, p Placed, on []*card) Warning {
	got, _ := cl.errors(p.Fit)
	worthAWord := counted(max(cl.options.Tolerance, resource.DefaultFit().Tolerance))
	shared, far := got > cl.limit(0), cl.aloneError > worthAWord
	if got <= worthAWord || !shared && !far {
		return Warning{}
	}
	note, alone := "off by "+deviation(p.Fit, cl.options.Prefer), deviation(p.Alone, cl.options.Prefer)
	if c.underpowered() {
		note += ", " + c.lackingPower()
	}
	switch {
	case shared:
		note += "; alone it would be " + alone
	case got > cl.aloneError:
		note += "; the closest there is would be " + alone
	default:
		note += ", the closest there is"
	}
	how := "as " + fit.SliceName(p.Slice.Profile)
	switch p.Slice.Sharing {
	case resource.SharingTime:
		how = "by time slices"
		if !p.Slice.Whole() {
			how += " of a " + p.Slice.Profile
		}
	case resource.SharingMPS:
		how = "by MPS"
		if !p.Slice.Whole() {
			how += " in a " + p.Slice.Profile
		}
	case resource.SharingAuto, resource.SharingMIG, resource.SharingExclusive, resource.SharingCompute:
	}
	return Warning{Text: fmt.Sprintf("%s %s on %s at %d MHz is %s", cl.target.ShortName(), how, f.cardNames(on), p.Fit.ClockMHz, note),
		Sessions: []resource.Address{p.Address}, Note: note, Far: got > cl.aloneError+counted(farOff) || c.Busy && c.isWhole()}
}

// setup returns the settings that a card's sessions need.
func (c *card) setup() Setup {
	s := Setup{Host: c.Host, UUID: c.UUID, Why: map[resource.Setting]resource.Reason{resource.SMClock: c.whyClock()}}
	want := func(setting resource.Setting, value int, why resource.Reason) {
		s.Settings, s.Why[setting] = s.Settings.With(setting, value), why
	}
	switch {
	case !c.Model.MIG() || c.stuckMIG():
	case c.isWhole():
		want(resource.MIGMode, resource.Off, resource.Reason{Kind: resource.ForWholeGPU})
	default:
		want(resource.MIGMode, resource.On, resource.Reason{Kind: resource.ForSlices})
	}
	if c.FixedClockMHz == nil && len(c.Model.ClocksMHz) > 0 {
		lock := c.clockMHz
		if lock == c.Model.MaxClockMHz() {
			lock = 0
		}
		want(resource.SMClock, lock, c.whyClock())
	}
	if !c.Fixed[resource.PowerLimit] && c.Model.PowerMaxMW > 0 {
		power, why := c.power()
		want(resource.PowerLimit, power, why)
	}
	switch {
	case c.Fixed[resource.ComputeMode]:
	case c.isShared() && c.occupants[0].slice.Sharing == resource.SharingMPS:
		want(resource.ComputeMode, resource.ExclusiveProcess, resource.Reason{Kind: resource.ForMPS})
	case c.Base.Has(resource.ComputeMode):
		want(resource.ComputeMode, c.Base.Value(resource.ComputeMode), resource.Reason{Kind: resource.NoMoreMPS})
	}
	byTime := slices.ContainsFunc(c.occupants, func(o occupant) bool { return o.slice.Sharing == resource.SharingTime })
	switch {
	case c.Fixed[resource.TimeSlice]:
		if byTime && c.WantTimeSlice != nil && !c.Without(resource.FeatureTimeSlice) {
			s.Why[resource.TimeSlice] = resource.Reason{Kind: resource.UnsafeTimeSlice}
		}
	case byTime && c.WantTimeSlice != nil:
		want(resource.TimeSlice, *c.WantTimeSlice, resource.Reason{Kind: resource.SharesByTime})
	case c.Base.Has(resource.TimeSlice):
		want(resource.TimeSlice, c.Base.Value(resource.TimeSlice), resource.Reason{Kind: resource.NoMoreTime})
	}
	for setting, value := range c.Again.All() {
		want(setting, value, resource.Reason{Kind: resource.MadeTogether})
	}
	for setting := range s.Settings.All() {
		if setting.Forgotten() && !c.Fixed[resource.PersistenceMode] {
			want(resource.PersistenceMode, resource.On, resource.Reason{Kind: resource.KeepsSettings})
		}
	}
	return s
}

func (c *card) whyClock() resource.Reason {
	if c.FixedClockMHz != nil {
		return resource.Reason{Kind: resource.FixedClock, MHz: c.clockMHz}
	}
	return resource.Reason{Kind: resource.BestClock, Targets: c.targets()}
}

func (c *card) targets() []string {
	var names []string
	for _, s := range c.occupants {
		if name := s.class.target.ShortName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// label names a GPU in output, with its node, or with its host if there are several.
func (c *card) label() string {
	if c.ofSeveral && c.Node == "" {
		return fmt.Sprintf("GPU %d of host %s", c.Index, c.Host)
	}
	return onNode(c.GPU)
}

func onNode(g GPU) string {
	if g.Node != "" {
		return fmt.Sprintf("GPU %d (node %s)", g.Index, g.Node)
	}
	return fmt.Sprintf("GPU %d", g.Index)
}

// deviation formats the preferred figures relative to the target's: "FP32 -8.9 %".
func deviation(f resource.Fit, prefer resource.Preference) string {
	fp32 := "FP32 " + fit.Percent(f.FP32Ratio())
	bandwidth := "bandwidth " + fit.Percent(f.BandwidthRatio())
	switch prefer {
	case resource.PreferBandwidth:
		return bandwidth
	case resource.PreferBalanced:
		return fp32 + " and " + bandwidth
	default:
		return fp32
	}
}
