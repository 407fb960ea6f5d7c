//go:build torture

// The profiler library with a sampler's mistakes in it, for the tests alone:
// overlay.json puts these files among those of package host, hooks.h in the
// place of the product's.
package host

/*
#include "torture.h"
*/
import "C"

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/sample/agent"
)

func init() {
	wrap = func(h *host) agent.ThreadHost { return &tortured{host: h} }
}

// tortured makes the mistakes that are Go's own.
type tortured struct {
	*host
	needed int
}

// Context needs threads of Go's that are not there yet, while a thread is
// suspended, if that is the mistake that is wanted: more of them each time.
func (h *tortured) Context(slot int, c *clr.Capture) bool {
	ok := h.host.Context(slot, c)
	if C.sw_torture_go_begin() != 0 {
		h.needed += 8
		quiet.Threads(h.needed)
		C.sw_torture_go_end()
	}
	return ok
}
