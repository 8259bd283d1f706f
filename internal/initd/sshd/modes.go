package sshd

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// Opcodes of terminal modes, RFC 4254 section 8 and RFC 8160.
var (
	characters = map[byte]int{
		1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
		8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT,
	}
	inputFlags = map[byte]uint32{
		30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR,
		36: unix.ICRNL, 37: unix.IUCLC, 38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
	}
	localFlags = map[byte]uint32{
		50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK, 56: unix.ECHONL,
		57: unix.NOFLSH, 58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
	}
	outputFlags = map[byte]uint32{
		70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET,
	}
)

// noCharacter disables a key.
const noCharacter = 255

// setModes sets the terminal modes that the client requests, and ignores unknown ones.
func setModes(tty *os.File, modes string) {
	state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	for rest := []byte(modes); len(rest) >= 5 && rest[0] > 0 && rest[0] < 160; rest = rest[5:] {
		applyMode(state, rest[0], binary.BigEndian.Uint32(rest[1:5]))
	}
	_ = unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, state) // otherwise the usual modes stay
}

func applyMode(state *unix.Termios, opcode byte, value uint32) {
	if i, ok := characters[opcode]; ok {
		if state.Cc[i] = byte(value); value == noCharacter {
			state.Cc[i] = 0
		}
		return
	}
	set := func(word *uint32, flag uint32) {
		if *word &^= flag; value != 0 {
			*word |= flag
		}
	}
	set(&state.Iflag, inputFlags[opcode])
	set(&state.Lflag, localFlags[opcode])
	set(&state.Oflag, outputFlags[opcode])
}
