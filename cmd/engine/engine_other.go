//go:build !linux && !(windows && amd64)

package engine

import (
	"fmt"
	"os"
)

// Run reports that there is no client library for this system.
func Run([]string) int {
	fmt.Fprintln(os.Stderr, "seedwalk engine: the client library is for Linux and Windows x64 only")
	return 2
}
