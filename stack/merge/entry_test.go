package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A hidden method that was interrupted at its first instruction has no frame yet, and the frame pointer is
// its caller's. A step by the frame pointer would skip the caller. Found by random worlds.
func TestHiddenAtEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Frameless)
		top := &w.Truth[0]
		// Code that FunctionFromIP knows and the CLR does not report.
		top.Kind, top.Function = fs.Hidden, 0x1004
		f := known{w, top.IP}
		m := merger(w)
		m.functions = f
		out := make([]Frame, 64)
		r := m.Merge(&w.Capture, out)
		expect.True(t, r.Complete() && r.Doubtful == 0, "%+v", r)
		check(t, w, out[:r.N])
	})
}

// known is a world's functions and one more.
type known struct {
	*fs.World
	ip uint64
}

func (k known) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if ip == k.ip {
		return 0x1004, 0
	}
	return k.World.FunctionFromIP(ip)
}

// In a PE image the first byte of a function is distinguished from all others. A call can only return to the
// others.
func TestEnteredPE(t *testing.T) {
	for _, arch := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(arch.String(), func(t *testing.T) {
			table, im := peTable(t, arch)
			for i := range im.Funcs {
				f := &im.Funcs[i]
				for off := range uint64(f.Size) {
					expect.Equal(t, entered(table, im.Base+uint64(f.RVA)+off), (off == 0),
						"%s+%#x", f.Name, off)
				}
			}
			checkEntries(t, table, im)
			expect.True(t, !entered(table, im.End()+16) && !entered(table, im.Base), "where no function is")
		})
	}
}

// checkEntries compares remembered answers with fresh ones: repeatedly, with more addresses than there is
// room for, and with a table that has no entries.
func checkEntries(t *testing.T, table *module.Table, im *image.Image) {
	t.Helper()
	var e entries
	none := module.NewTable(8, nil, nil)
	for range 2 {
		for range 2 {
			for ip := im.Base; ip < im.End(); ip++ {
				if got := e.has(table, ip); got != entered(table, ip) || got != e.has(table, ip) {
					t.Fatalf("%#x is remembered as %v", ip, got)
				}
			}
		}
		for i := range im.Funcs {
			ip := im.Base + uint64(im.Funcs[i].RVA)
			e.has(table, ip)
			expect.True(t, !e.has(none, ip), "%#x: what a table said is remembered of another", ip)
		}
	}
}

func peTable(t *testing.T, arch image.Arch) (*module.Table, *image.Image) {
	var funcs []image.Func
	add := func(f image.Func, err error) {
		must.Do(t, err)
		funcs = append(funcs, f)
	}
	if arch == image.ARM64 {
		add(image.ShapeARM64{FramePointer: true, RegI: 2, Calls: 2, Body: 6,
			FrameSize: 64}.Func(image.PE, "packed"))
		add(image.ShapeARM64{FramePointer: true, RegI: 2, Calls: 2, Body: 6, FrameSize: 64,
			Xdata: true}.Func(image.PE, "record"))
	} else {
		add(image.ShapeAMD64{Saves: []image.Reg{3}, Alloc: 48, Calls: 2, Body: 6}.Func(image.PE, "plain"))
		add(image.ShapeAMD64{Saves: []image.Reg{3}, Alloc: 48, Calls: 2, Body: 6,
			Chained: true}.Func(image.PE, "chained"))
	}
	im := must.Get(image.Build(arch, image.PE, "m", 0x7ff8_0000_0000, funcs))(t)
	f := must.Get(pe.FromMemory(im.File, "m"))(t)
	return module.NewTable(7, []module.Module{module.PEFromFile(1, f, "m", im.Base, im.End())}, nil), im
}

// A marker at the first byte of a function is the hijack stub that a returning method has in its link
// register: a gap, not a frame. Found by FuzzProtocol.
func TestMarkerAtHijackStub(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Native, fs.Managed, fs.Native)
		for i := range w.Capture.Frames {
			if f := &w.Capture.Frames[i]; f.Marker() {
				f.IP &^= 0xff
			}
		}
		r, got := run(w)
		expect.True(t, r.Gap == GapCLRCut && r.N == 3 && got[2].Kind == unwind.KindGap, "%+v: %+v", r, got)
	})
}

// A walk that continues at a function's first byte is cut only if the CLR's marker is there. Otherwise the
// function before ends with a call that does not return.
func TestOnlyMarkersAreCut(t *testing.T) {
	table, im := peTable(t, image.AMD64)
	for trust, want := range map[unwind.Trust]Gap{
		unwind.TrustCLR: GapCLRCut, unwind.TrustUnwindInfo: GapNoInfo,
	} {
		m := standing(0x1000, 0)
		m.SetTable(table)
		m.regs.SetIP(im.Base + uint64(im.Funcs[1].RVA))
		m.at.Trust, m.out = trust, make([]Frame, 8)
		m.block()
		expect.Equal(t, m.res.Gap, want, "a walk by %v", trust)
	}
}

// Unmanaged frames found by a guess are counted, and so are all frames reached from them.
func TestGuessedUnmanagedFramesAreCounted(t *testing.T) {
	for _, c := range []struct {
		name  string
		trust []unwind.Trust
		want  int
	}{
		{"none", []unwind.Trust{unwind.TrustContext, unwind.TrustCFI}, 0},
		{"the first", []unwind.Trust{unwind.TrustFramePointer, unwind.TrustFramePointer}, 2},
		{"in the midst", []unwind.Trust{unwind.TrustContext, unwind.TrustFramePointer,
			unwind.TrustFramePointer}, 2},
		{"the last", []unwind.Trust{unwind.TrustContext, unwind.TrustCFI, unwind.TrustFramePointer}, 1},
	} {
		m := merger(fs.BuildFor(context.ArchAMD64, fs.Root, fs.Native))
		m.in, m.out, m.guess = &clr.Capture{}, make([]Frame, 8), -1
		for i, tr := range c.trust {
			m.buf[i] = unwind.Frame{IP: uint64(i + 1), SP: uint64(i + 1), Trust: tr}
		}
		m.native(len(c.trust))
		if r := m.finish(); r.N != len(c.trust) || r.Doubtful != c.want {
			t.Errorf("%s: %d of %d frames are doubtful, want %d", c.name, r.Doubtful, r.N, c.want)
		}
	}
}

// A hidden frame that was interrupted in its prolog, or keeps no frame pointer, has its caller's. So the
// guess skips the caller, which the CLR reported. The guessed frames are removed: otherwise they would
// appear twice.
func TestGuessPastTheCLRIsTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range []struct {
			name  string
			kinds []fs.Kind
			below int // the frame that has its caller's frame pointer
			gap   Gap
		}{
			{"to the root", []fs.Kind{fs.Root, fs.Framed, fs.Managed, fs.Hidden}, 0, GapLostManaged},
			{"to another method", []fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Managed, fs.Hidden}, 0,
				GapMismatch},
			{"to another hidden frame",
				[]fs.Kind{fs.Root, fs.Framed, fs.Hidden, fs.Managed, fs.Hidden}, 0, GapMismatch},
			{"to code without unwind data",
				[]fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Framed, fs.Managed, fs.Hidden}, 0, GapNoInfo},
			{"through a second hidden frame",
				[]fs.Kind{fs.Root, fs.Framed, fs.Managed, fs.Hidden, fs.Hidden}, 1, GapLostManaged},
		} {
			w := fs.BuildFor(arch, c.kinds...)
			if fp := w.Truth[c.below+1].FP; c.below == 0 {
				w.Capture.Regs.SetFP(fp)
			} else {
				store(w, w.Truth[c.below-1].FP, fp)
			}
			r, got := run(w)
			if r.Gap != c.gap || len(got) < 3 || got[1].Kind != unwind.KindGap ||
				got[2].IP != w.Truth[c.below+1].IP {
				t.Errorf("%s: %+v: %+v", c.name, r, got)
				continue
			}
			if got[1].SP <= got[0].SP || c.below == 0 && got[1].SP < got[2].SP {
				t.Errorf("%s: the gap stands at sp %#x", c.name, got[1].SP)
			}
			inOrder(t, w, got)
			hidden := 0
			for i := range got {
				if got[i].Kind == unwind.KindManaged && got[i].Trust != unwind.TrustCLR {
					hidden++
				}
			}
			expect.True(t, r.Hidden == hidden && r.N == len(got),
				"%s: %d hidden frames are counted, %d written", c.name, r.Hidden, hidden)
		}
	})
}
