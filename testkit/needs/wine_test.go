package needs

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The messages of Wine's services are removed, and no other lines.
func TestWithoutWine(t *testing.T) {
	const said = "seedwalk: one line\nwine: Unhandled page fault on read access to 0000000000000008 at address 000000031CAA2391 (thread 008c), starting debugger...\nseedwalk: wine: Unhandled\n"
	const want = "seedwalk: one line\nseedwalk: wine: Unhandled\n"
	expect.Equal(t, WithoutWine(t, said), want)
}
