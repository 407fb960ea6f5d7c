package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Made stacks have real unwind data and code, of one runtime compiled for two systems. So PE
// and ELF do the same kind of work. Each frame has the size that its function declares. Its
// return address is in the middle of another function, so hardly two frames share a rule.

const (
	coreclrDLL = "../.cache/dotnet-*-win/package/shared/*/*/coreclr.dll"
	coreclrSO  = "../.cache/dotnet-9.*/package/dist/libcoreclr.so"

	madeStack = 0x7000_0000
	madeRoom  = 1 << 21
	madeLast  = 0xdead_0000 // where the last frame returns to: no module
)

// maker makes stacks of the functions of a table.
type maker struct {
	from  string
	sets  [][]capture.Image // for the peer; of PE there is none
	table *module.Table
	u     *amd64.Unwinder
	fns   []uint64 // the middles of functions
}

func newMaker(from string, mods []module.Module) *maker {
	m := &maker{from: from, table: module.NewTable(1, mods, nil), u: managed.NewAMD64()}
	m.u.SetTable(m.table)
	for i := range m.table.Len() {
		m.add(m.table.At(i))
	}
	return m
}

// add takes the functions of a module.
func (m *maker) add(mod *module.Module) {
	if mod.PE != nil {
		for i := range mod.PE.AMD64().Len() {
			fn := mod.PE.AMD64().Entry(i)
			m.fns = append(m.fns, mod.Bias+uint64(fn.Begin)+uint64(fn.End-fn.Begin)/2)
		}
		return
	}
	mod.CFI.Each(func(fde cfi.FDE) bool {
		m.fns = append(m.fns, mod.Bias+fde.Lo+(fde.Hi-fde.Lo)/2)
		return true
	})
}

// makePE makes stacks of coreclr.dll's functions, else of the recorded test
// programs'.
func makePE(tb testing.TB) *maker {
	tb.Helper()
	if found, err := filepath.Glob(coreclrDLL); err == nil && len(found) > 0 {
		if m := module.LoadPE(1, found[0], 0x1_8000_0000, 0); m.PE != nil {
			return newMaker("coreclr.dll", []module.Module{m})
		}
	}
	var mods []module.Module
	_, err := pevec.Each("amd64-native.jsonl.gz", func(v *pevec.Vector) error {
		base := uint64(len(mods)+1) << 33
		mods = append(mods, module.Module{Start: base, End: base + 1<<32, Bias: base, PE: v.Image()})
		return nil
	})
	if errors.Is(err, pevec.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: ", err)
	}
	must.Do(tb, err)
	return newMaker("PE test programs", mods)
}

// makeELF makes stacks of libcoreclr.so's functions, else of the C library's.
func makeELF(tb testing.TB) *maker {
	tb.Helper()
	for _, pattern := range []string{coreclrSO, "/lib/*-linux-gnu/libc.so.6"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			continue
		}
		im := capture.Image{Start: 1 << 40, End: 1<<40 + 1<<28, Bias: 1 << 40, Path: found[0]}
		mod := module.LoadELF(1, im.Path, im.Start, im.End, im.Bias)
		must.True(tb, mod.CFI != nil, "%v", mod.Err)
		m := newMaker(filepath.Base(im.Path), []module.Module{mod})
		m.sets = [][]capture.Image{{im}}
		return m
	}
	tb.Skip("SKIPPED-CHECK: neither libcoreclr.so nor libc.so.6")
	return nil
}

// stack makes a walk of so many frames. Every word of the stack is an address
// a little above itself, so that a saved frame register is one.
func (m *maker) stack(rnd *rand.Rand, frames int) capture.Stack {
	data := make([]byte, madeRoom)
	put := func(at, v uint64) { binary.LittleEndian.PutUint64(data[at-madeStack:], v) }
	for i := uint64(0); i < madeRoom; i += 8 {
		put(madeStack+i, madeStack+i+0x100)
	}
	w := capture.Stack{Limit: frames, Runs: []memory.Run{{Addr: madeStack, Data: data}}}
	mem := memory.New(w.Runs...)
	w.Regs.Known = context.AMD64All
	w.Regs.GPR[context.RSP] = madeStack + 0x200
	w.Regs.GPR[context.RBP] = madeStack + 0x300
	regs := w.Regs
	for n := 0; n < frames; {
		ip, to := m.fns[rnd.IntN(len(m.fns))], regs
		to.RIP = ip
		if n == 0 {
			w.Regs.RIP = ip
		} else {
			put(regs.SP()-8, ip)
		}
		if m.leaves(&to, n == 0, mem, put) {
			regs = to
			n++
		}
	}
	put(regs.SP()-8, madeLast)
	return w
}

// leaves steps out of a function if it is one that can stand on a made stack:
// unwind data applies, and the frame is neither huge nor empty. The first step finds where
// the return address is; the second one starts with that leading to a function.
func (m *maker) leaves(regs *amd64.Registers, exact bool, mem *memory.Window, put func(at, v uint64)) bool {
	var f unwind.Frame
	sp, from := regs.SP(), context.FromAMD64(*regs)
	to := from
	at := unwind.State{Regs: &to, Exact: exact, Trust: unwind.TrustContext}
	stop := m.u.Step(&at, mem, nil, &f)
	if stop == unwind.StopNone && to.SP() >= sp+8 && to.SP() < sp+4096 {
		put(to.SP()-8, m.fns[0])
		to = from
		at = unwind.State{Regs: &to, Exact: exact, Trust: unwind.TrustContext}
		stop = m.u.Step(&at, mem, nil, &f)
	}
	*regs = to.AMD64
	grown := regs.SP() - sp
	return stop == unwind.StopNone && !at.Exact && at.Trust < unwind.TrustLeaf && grown >= 8 &&
		grown < 4096 && f.CFA == regs.SP()
}

// file makes some stacks, the same at each call.
func (m *maker) file(stacks, frames int) *capture.File {
	rnd, f := rand.New(rand.NewPCG(1, uint64(frames))), &capture.File{Sets: m.sets}
	for range stacks {
		f.Stacks = append(f.Stacks, m.stack(rnd, frames))
	}
	return f
}

// side is our side of them.
func (m *maker) side(f *capture.File) *side {
	s := &side{file: f, us: []*amd64.Unwinder{managed.NewAMD64()}}
	s.us[0].SetTable(m.table)
	for i := range f.Stacks {
		s.mems = append(s.mems, memory.New(f.Stacks[i].Runs...))
	}
	return s
}

// Made stacks are walked to their ends, the same with cached rules and without.
func TestMade(t *testing.T) {
	for _, m := range []*maker{makePE(t), makeELF(t)} {
		for _, frames := range []int{8, 32, 128} {
			s := m.side(m.file(16, frames))
			for i := range s.file.Stacks {
				var out [2][]unwind.Frame
				for k, off := range []bool{false, true} {
					s.empty(off)
					must.Equal(t, s.walk(i), frames, "%s: frames", m.from)
					out[k] = append(out[k], s.out[:frames]...)
				}
				for k := range out[0] {
					must.True(t, out[0][k] == out[1][k],
						"%s: frame %d: %+v with the cache, %+v without", m.from, k, out[0][k], out[1][k])
				}
			}
		}
	}
}

// BenchmarkMade compares our walk of made ELF stacks with libunwind's. It also compares our
// walk of made PE stacks with our walk of made ELF stacks, because no native unwinder of PE
// runs on Linux.
func BenchmarkMade(b *testing.B) {
	windows, linux := makePE(b), makeELF(b)
	peers, _ := rivals(b)
	// libdwfl reads no made file.
	peers = slices.DeleteFunc(peers, func(r rival) bool { return r.name == "libdwfl" })
	b.Logf("functions of %s, %s", windows.from, linux.from)
	for _, shape := range []struct{ stacks, frames int }{{1, 8}, {1, 32}, {1, 128}, {50, 32}} {
		name := fmt.Sprint(shape.frames)
		if shape.stacks > 1 {
			name = fmt.Sprintf("%dx%d", shape.stacks, shape.frames)
		}
		elf := linux.file(shape.stacks, shape.frames)
		all(b, "made-elf-"+name, peers, elf)
		ours, other := windows.side(windows.file(shape.stacks, shape.frames)), linux.side(elf)
		for _, mode := range []peer.Mode{peer.Warm, peer.Cold, peer.Off} {
			name := "made-pe-" + name + "/" + string(mode)
			b.Run(name, func(b *testing.B) {
				r := against(name, "ours-elf", shape.stacks*shape.frames, ours.ours(mode), other.ours(mode))
				ours.again(b, mode)
				r.report(b)
			})
		}
	}
}
