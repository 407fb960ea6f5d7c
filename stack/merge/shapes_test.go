package merge

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// randomKinds is a stack of up to 24 frames. Only the last may be frameless. No hidden frame has called a
// reported one: the CLR omits such frames without a marker, and a merge without tables cannot find them.
func randomKinds(r *rand.Rand) []fs.Kind {
	return kindsOf(r, false)
}

// kindsOf is randomKinds; with between, hidden frames have called reported ones.
func kindsOf(r *rand.Rand, between bool) []fs.Kind {
	mix := []fs.Kind{fs.Hidden, fs.ILStub, fs.Native, fs.Framed, fs.Framed, fs.Managed, fs.Managed}
	kinds := []fs.Kind{fs.Root}
	for range 1 + r.IntN(23) {
		n := len(mix)
		if last := kinds[len(kinds)-1]; !between && last == fs.Hidden || last == fs.ILStub {
			n -= 2
		}
		kinds = append(kinds, mix[r.IntN(n)])
	}
	if kinds[len(kinds)-1] == fs.Managed && r.IntN(8) == 0 {
		kinds = append(kinds, fs.Frameless)
	}
	return kinds
}

// stale fills every empty word of the stack with leftovers of earlier calls: return addresses and pointers
// into the stack.
func stale(w *fs.World, r *rand.Rand) {
	data := w.Capture.Stack.Data
	for at := 0; at+8 <= len(data); at += 8 {
		if binary.LittleEndian.Uint64(data[at:]) != 0 {
			continue
		}
		f := &w.Truth[r.IntN(len(w.Truth))]
		v := f.IP
		if r.IntN(2) == 0 {
			v = f.SP
		}
		binary.LittleEndian.PutUint64(data[at:], v)
	}
}

// With the runtime's tables every stack is complete and certain, whatever is left over between its frames.
func TestRandomStacksWithTables(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for n := range uint64(randomRuns) {
			r := rand.New(rand.NewPCG(n, 1))
			w := fs.BuildFor(arch, kindsOf(r, true)...)
			stale(w, r)
			if r.IntN(4) == 0 {
				refuse(w)
			}
			m, out := merger(w), make([]Frame, 64)
			giveTables(m, truth{w: w})
			res := m.Merge(&w.Capture, out)
			must.True(t, res.Complete() && res.Doubtful == 0, "run %d: %+v", n, res)
			check(t, w, out[:res.N])
			must.True(t, !t.Failed(), "run %d", n)
		}
	})
}

// Without tables, a stack marked complete and certain is the true one. On x86-64 all stacks that the CLR
// reports are; on ARM64 those whose hidden frames were called by managed code or by functions with a frame
// pointer.
func TestRandomStacksWithoutTables(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		certain := 0
		for n := range uint64(randomRuns) {
			r := rand.New(rand.NewPCG(n, 2))
			w := fs.BuildFor(arch, randomKinds(r)...)
			stale(w, r)
			res, got := run(w)
			must := !w.Capture.Result.Failed() && (arch == context.ArchAMD64 || !guessesSP(w))
			if must && !res.Complete() {
				t.Fatalf("run %d: %+v of %+v", n, res, w.Truth)
			}
			claimed := res.Complete() && res.Doubtful == 0
			if must || claimed {
				check(t, w, got)
			}
			if t.Failed() {
				t.Fatalf("run %d: %+v", n, res)
			}
			if claimed {
				certain++
			}
		}
		if t.Logf("%d of %d complete and certain", certain, randomRuns); certain < randomRuns/4 {
			t.Error("too few to mean anything")
		}
	})
}

const randomRuns = 400

// guessesSP reports whether a guess ends in a frame whose unwind data starts from SP.
func guessesSP(w *fs.World) bool {
	for i := 1; i < len(w.Truth); i++ {
		above, k := w.Truth[i-1].Kind, w.Truth[i].Kind
		if k == fs.Native && (above == fs.Hidden || above == fs.ILStub) {
			return true
		}
	}
	return false
}

// A hidden frame called by a function without a frame pointer: x86-64 knows the caller's SP; ARM64 does not
// and must not claim it.
func TestHiddenBelowUnframed(t *testing.T) {
	kinds := []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Hidden, fs.Native}
	w := fs.Build(kinds...)
	r, got := run(w)
	expect.True(t, r.Complete() && r.Doubtful == 0, "x86-64: %+v", r)
	check(t, w, got)
	w = fs.BuildFor(context.ArchARM64, kinds...)
	r, got = run(w)
	if r.Complete() && r.Doubtful == 0 {
		t.Errorf("ARM64: %+v passes for certain", r)
	}
	if n := len(got); n < 3 || got[n-2].IP != w.Truth[3].IP || got[n-2].Trust != unwind.TrustCLR {
		t.Errorf("ARM64: the frame below the gap is lost: %+v", got)
	}
}

// The CLR replaces the return address of a frame it does not report.
func TestHijackedHiddenFrame(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Hidden, fs.Native)
		store(w, w.Truth[1].Slot, w.Truth[0].IP&^0xff)
		r, got := run(w)
		expect.True(t, r.Complete() && r.Doubtful == 0, "%+v", r)
		check(t, w, append(got[:2:2],
			Frame{IP: got[2].IP, SP: got[2].SP, Kind: got[2].Kind, Function: got[2].Function}, got[3]))
	})
}

// A stub without a frame has its caller's frame pointer and, on ARM64, its SP too. It must not be taken for a
// method.
func TestFramelessStubIsNoMethod(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Managed, fs.Frameless)
		r, got := run(w)
		if r.Managed != 2 || r.Hidden != 1 || len(got) != 4 || got[0].Kind != unwind.KindStub ||
			got[0].Function != 0 || got[1].IP != w.Truth[1].IP {
			t.Errorf("%+v: %+v", r, got)
		}
	})
}

// Code where a walk cannot begin becomes a gap, followed by the CLR's frames.
func TestSpecials(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range []struct {
			name    string
			kinds   []fs.Kind
			change  func(w *fs.World, s *managed.Specials)
			verdict seed.Verdict
			gap     Gap
			frames  int // true ones
		}{
			{"redirect stub", []fs.Kind{fs.Root, fs.Managed, fs.Managed, fs.Native},
				func(w *fs.World, s *managed.Specials) {
					s.Redirect.Add(memory.Range{Start: w.Truth[0].IP, End: w.Truth[0].IP + 1})
				}, seed.StubOnTop, GapStubOnTop, 4},
			{"another place of the same function", []fs.Kind{fs.Root, fs.Managed, fs.Managed, fs.Native},
				func(w *fs.World, s *managed.Specials) {
					s.Redirect.Add(memory.Range{Start: w.Truth[0].IP - 4, End: w.Truth[0].IP})
				}, seed.Found, GapNone, 4},
			{"dispatcher", []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Native},
				func(w *fs.World, s *managed.Specials) {
					s.Dispatch.Add(memory.Range{Start: w.Truth[0].IP &^ 0xff, End: w.Truth[0].IP + 1})
				}, seed.StubOnTop, GapStubOnTop, 3},
			{"IL stub, which can be left", []fs.Kind{fs.Root, fs.Managed, fs.ILStub},
				func(w *fs.World, s *managed.Specials) {
					s.IsMethod = func(ip uint64) bool { _, hr := w.FunctionFromIP(ip); return hr == clr.S_OK }
				}, seed.StubOnTop, GapNone, 3},
			{"foreign stack", []fs.Kind{fs.Root, fs.Managed, fs.Managed, fs.Native},
				func(w *fs.World, _ *managed.Specials) {
					w.Capture.Thread.StackLow = w.Capture.Thread.StackHigh - 8
				}, seed.ForeignStack, GapForeignStack, 3},
		} {
			w, s := fs.BuildFor(arch, c.kinds...), &managed.Specials{}
			c.change(w, s)
			m, out := merger(w), make([]Frame, 64)
			m.SetSpecials(s)
			r := m.Merge(&w.Capture, out)
			expect.True(t, r.Verdict == c.verdict && r.Gap == c.gap, "%s: %+v", c.name, r)
			expect.Equal(t, inOrder(t, w, out[:r.N]), c.frames, "%s: true frames: %+v", c.name, out[:r.N])
		}
	})
}

// A step by tables must go up the stack. Exception: on ARM64, a frame interrupted before it stored anything.
func TestStepsClimb(t *testing.T) {
	for _, c := range []struct {
		name  string
		sp    uint64
		pc    uint64
		exact bool
		want  bool
	}{
		{"up", 0x1010, 4, false, true},
		{"down", 0xff0, 4, true, false},
		{"an interrupted leaf", 0x1000, 4, true, true},
		{"a caller that stays", 0x1000, 4, false, false},
		{"nothing changes", 0x1000, 8, true, false},
	} {
		for _, a := range context.Arches {
			from, to := context.Registers{Arch: a}, context.Registers{Arch: a}
			from.SetIP(8)
			from.SetSP(0x1000)
			to.SetIP(c.pc)
			to.SetSP(c.sp)
			want := c.want && (a == context.ArchARM64 || c.sp > 0x1000)
			if got := arches[a].climbs(&unwind.State{Regs: &from, Exact: c.exact},
				&unwind.State{Regs: &to}); got != want {
				t.Errorf("%v, %s: %v", a, c.name, got)
			}
		}
	}
}

// The stack's leaf may be a stub without a frame, called by native functions without frames. This happens on
// the way from native code into a method. The frame pointer then belongs to the method below all of them. The
// merge must not omit the native frames silently.
func TestFramelessStubCalledByNativeCode(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, tables := range []bool{false, true} {
			for natives := range 4 {
				kinds := []fs.Kind{fs.Root, fs.Native, fs.Managed, fs.Managed}
				for range natives {
					kinds = append(kinds, fs.Native)
				}
				w := fs.BuildFor(arch, append(kinds, fs.Frameless)...)
				m, out := merger(w), make([]Frame, 64)
				if tables {
					giveTables(m, truth{w: w})
				}
				r := m.Merge(&w.Capture, out)
				if tables && !r.Complete() || natives == 0 && (!r.Complete() || r.Doubtful != 0) ||
					r.Managed != 2 {
					t.Errorf("tables %v, %d native: %+v", tables, natives, r)
				}
				if r.Complete() && r.Doubtful == 0 {
					check(t, w, out[:r.N])
				}
			}
		}
	})
}

// Words between two frames that are no addresses in code prove that there is no frame, but only near ones.
func TestCodeBetween(t *testing.T) {
	const low = fs.StackLow
	w := fs.BuildFor(context.ArchAMD64, fs.Root, fs.Native, fs.Managed)
	m := merger(w)
	for _, c := range []struct {
		name string
		size uint64
		at   int // where there is a return address, -1: nowhere
		ra   uint64
		want bool
	}{
		{"nothing", 0, -1, 0, false},
		{"the most bytes of a stub", maxStub, -1, 0, false},
		{"a word more", maxStub + 8, -1, 0, true},
		{"native code, first", 64, 0, w.Truth[1].IP, true},
		{"managed code, last", 64, 56, w.Truth[0].IP, true},
		{"behind the end", 64, 64, w.Truth[0].IP, false},
		{"an unreadable word", maxStub, maxStub / 2, 0, true},
	} {
		words := make([]byte, maxStub+8)
		if c.at >= 0 {
			binary.LittleEndian.PutUint64(words[c.at:], c.ra)
		}
		if c.at >= 0 && c.ra == 0 {
			words = words[:c.at]
		}
		m.mem.Reset(low, words)
		expect.Equal(t, m.codeBetween(low, low+c.size), c.want, c.name)
	}
}
