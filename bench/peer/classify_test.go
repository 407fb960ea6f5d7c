package peer

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// A difference is due to the peer's guess if the peer guessed any frame between the leaf and it.
func TestCompareAfterAGuess(t *testing.T) {
	const cfi = unwind.TrustCFI
	want := Want{Frames: []Frame{{1, 8, true, cfi}, {2, 16, true, cfi}, {3, 24, true, cfi}}, Block: 3}
	for name, c := range map[string]struct {
		found [3]bool
		ip    uint64
		want  Class
	}{
		"equal":                 {[3]bool{true, true, true}, 3, Equal},
		"guessed just above":    {[3]bool{true, false, true}, 9, GuessDiffers},
		"guessed at the leaf":   {[3]bool{false, true, true}, 9, GuessDiffers},
		"guessed only here":     {[3]bool{true, true, false}, 9, Differs},
		"unwind data all along": {[3]bool{true, true, true}, 9, Differs},
	} {
		got := []Frame{{1, 8, c.found[0], 0}, {2, 16, c.found[1], 0}, {c.ip, 24, c.found[2], 0}}
		class, _ := Compare(want, got)
		expect.True(t, class == c.want, "%s: %s, want %s", name, class, c.want)
	}
}
