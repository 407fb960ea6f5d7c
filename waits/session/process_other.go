//go:build !linux

package session

import (
	"io"

	"github.com/seedwalk/seedwalk/waits"
)

func threadName(pid int, tid uint64) string { return "" }

func images(n *waits.Names, pid int) {}

// ReadMaps learns what was mapped from lines of /proc/PID/maps.
func ReadMaps(n *waits.Names, in io.Reader) error { return nil }
