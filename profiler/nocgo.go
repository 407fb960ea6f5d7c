//go:build !cgo

package main

import (
	"fmt"
	"os"
)

// main lets go build ./... pass without a C compiler. The library needs one.
func main() {
	fmt.Fprintln(os.Stderr, "seedwalk profiler: built without cgo; build it with scripts/library.sh")
	os.Exit(1)
}
