package snap

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// open returns one architecture's archive or skips, counted.
func open(t *testing.T, arch string) *Archive {
	t.Helper()
	a, err := OpenVectors(ForArch(arch))
	if errors.Is(err, ErrAbsent) {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(t, err)
	return a
}

// Every snapshot loads, its top frame is its own registers, and its stack
// pointer can be read: what the walkers' tests rely on.
func TestSnapshotsLoad(t *testing.T) {
	for _, arch := range []string{"x86_64", "aarch64"} {
		t.Run(arch, func(t *testing.T) {
			a := open(t, arch)
			names := a.Programs(arch)
			must.True(t, len(names) != 0, "no programs")
			n := 0
			for _, name := range names {
				p := must.Get(a.Load(name))(t)
				for i := range p.Snapshots {
					check(t, p, &p.Snapshots[i])
					n++
				}
			}
			t.Logf("%d programs, %d snapshots", len(names), n)
		})
	}
}

func check(t *testing.T, p *Program, s *Snapshot) {
	t.Helper()
	ip, sp := topOf(t, p.Arch, s)
	if top := s.Frames[0]; uint64(top.PC) != ip || uint64(*top.SP) != sp {
		t.Errorf("%s: frame 0 is %#x/%#x, registers %#x/%#x", s.ID, top.PC, *top.SP, ip, sp)
	}
	w := must.Get(p.Window(s))(t)
	if _, ok := w.Word(sp); !ok && len(s.Frames) > 1 {
		t.Errorf("%s: word at sp %#x not readable", s.ID, sp)
	}
	tab := must.Get(p.Table(s))(t)
	// The AArch64 vdso was not recorded as a module; its frames name none.
	if i := tab.Find(ip); i < 0 && s.Frames[0].Mod != "" {
		t.Errorf("%s: pc %#x of %s in no module", s.ID, ip, s.Frames[0].Mod)
	}
}

func topOf(t *testing.T, arch string, s *Snapshot) (ip, sp uint64) {
	t.Helper()
	if arch == "x86_64" {
		r := must.Get(s.AMD64())(t)
		return r.RIP, r.SP()
	}
	r := must.Get(s.ARM64())(t)
	return r.PC, r.Sp
}

// knownGhosts are the frames that the truth holds too many. More would mean that
// something else is taken for a flaw of the truth.
var knownGhosts = map[string]int{"getpid called at libc.so.6+0x80978": 28,
	"getpid called at sig_O0+0xd9c": 48}

func TestKnownGhosts(t *testing.T) {
	a, got := open(t, "aarch64"), map[string]int{}
	for _, name := range a.Programs("aarch64") {
		p := must.Get(a.Load(name))(t)
		for i := range p.Snapshots {
			ghosts, err := p.DropGhosts(&p.Snapshots[i])
			if err != nil || len(ghosts) > 0 && p.Snapshots[i].Class == "cfi_exact" {
				t.Errorf("%s: %v, ghosts %v", p.Snapshots[i].ID, err, ghosts)
			}
			for _, g := range ghosts {
				got[g]++
			}
		}
	}
	diff := cmp.Diff(knownGhosts, got)
	expect.True(t, diff == "", "%v", diff)
}
