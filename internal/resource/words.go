package resource

import "fmt"

// The words for values, the same wherever a person reads them.

// OnOff is a switch's state.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Watts writes a power in mW as W.
func Watts(mw int) string {
	if mw%1000 == 0 {
		return fmt.Sprintf("%d W", mw/1000)
	}
	return fmt.Sprintf("%.1f W", float64(mw)/1000)
}

// Clock writes a clock lock in MHz; 0 is none.
func Clock(mhz int) string {
	if mhz == 0 {
		return "unlocked"
	}
	return fmt.Sprintf("%d MHz", mhz)
}

// String names a slice: "1g.18gb, slot 3".
func (s Slice) String() string {
	if s.Whole() {
		return "whole GPU"
	}
	return fmt.Sprintf("%s, slot %d", s.Profile, s.Start)
}

// ContainerWord is what a runtime's container is called.
func ContainerWord(runtime string) string {
	if runtime == RuntimeProcess {
		return "session folder"
	}
	return "container"
}
