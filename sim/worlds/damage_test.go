package worlds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// seeded makes a world one whose CLR takes seeds.
func seeded(a image.Arch) func(s *sim.Setup) {
	return func(s *sim.Setup) {
		s.Variant, s.Arch = vm.Variants()[s.Run%3], a
	}
}

// mayKill lists the kinds whose bad seeds may end the CLR. Without tables of managed code, such a
// seed looks good: a wrong return address can still lie in a method, between two instructions. It
// takes a wrong copy of the stack. Wrong registers lead to words that hold true return addresses; of
// 2,800 worlds with a flipped bit of ip (-damaged 2800) one still dies.
var mayKill = map[string]bool{"bit flip in the stack's copy": true}

// certain are the kinds that no bad seed passes.
var certain = map[string]bool{"wrong thread": true, "misaligned sp": true, "foreign sp": true,
	"non-canonical address": true}

// mostWrong bounds the share of bad contexts, in percent, that make the CLR report a frame that is
// not there. A kind that is not listed has 1. These seeds cannot be distinguished from good ones: their ip,
// stack pointer, and frame chain fit code that the thread could have been in. Only the unwind data
// of the managed frame, which the sampler does not have, shows that its caller is none. ARM64 has
// more of them, since its link register is a true return address in any function, though the seed has
// witnesses there (stack/seed/witness.go).
var mostWrong = map[image.Arch]map[string]float64{
	image.AMD64: {"stale context": 4, "sp off by words": 2, "ip in other unmanaged code": 2},
	image.ARM64: {"stale context": 4, "sp off by words": 3,
		"ip in other unmanaged code": 9, "ip in a stub": 5},
}

// Bad contexts of every kind: what is caught, and what comes of the rest.
func TestBadSeeds(t *testing.T) {
	if *world != 0 {
		return
	}
	n := *bad
	if testing.Short() {
		n = 60
	}
	for _, arch := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(arch.String(), func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, "%-34s %6s %6s | %7s %8s %7s %7s | %7s %6s\n", "kind", "tries", "same", "caught",
				"harmless", "lost", "wrong", "refused", "deaths")
			for i := range Kinds {
				k := &Kinds[i]
				s := damaged(t, k, n, arch)
				bad := max(1, s.Tries+s.Faults-s.Same)
				pc := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(bad)) }
				fmt.Fprintf(&b, "%-34s %6d %6d | %7s %8s %7s %7s | %7s %6d\n", k.Name, s.Tries, s.Same,
					pc(s.Caught), pc(s.Harmless), pc(s.Lost), pc(s.Wrong), pc(s.Refused), s.Faults)
				if s.Tries < int(n)/10 {
					t.Errorf("%s: %d tries only", k.Name, s.Tries)
				}
				if certain[k.Name] && s.Caught+s.Same != s.Tries {
					t.Errorf("%s: %d of %d are caught", k.Name, s.Caught, s.Tries-s.Same)
				}
				if most := max(1, mostWrong[arch][k.Name]); float64(s.Wrong) > most*float64(bad)/100+1 {
					t.Errorf("%s: %d of %d show a frame that is not there, more than %.0f %%", k.Name,
						s.Wrong, bad, most)
				}
				if s.Faults != 0 && !mayKill[k.Name] {
					t.Errorf("%s: what was let through has killed the CLR %d times", k.Name, s.Faults)
				}
			}
			t.Log("\n" + b.String())
		})
	}
}

// damaged runs n worlds with one kind of damage.
func damaged(t *testing.T, k *Kind, n uint64, a image.Arch) (sum Sorts) {
	for run := uint64(1); run <= n; run++ {
		d := &Damage{Kind: k}
		r := Run(run, Options{Damage: d, Setup: seeded(a)})
		if r.Result.Outcome == sched.Fault && strings.Contains(r.Result.Fault, "80131506") {
			d.Sorts.Faults++
		} else if err := r.Err(); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		sum.add(&d.Sorts)
	}
	return sum
}

func (s *Sorts) add(o *Sorts) {
	s.Tries += o.Tries
	s.Same += o.Same
	s.Caught += o.Caught
	s.Unused += o.Unused
	s.Refused += o.Refused
	s.True += o.True
	s.Lost += o.Lost
	s.Wrong += o.Wrong
	s.Harmless += o.Harmless
	s.Faults += o.Faults
}
