package fullscreen

import "golang.org/x/sys/unix"

const readTermios, writeTermios = unix.TCGETS, unix.TCSETS
