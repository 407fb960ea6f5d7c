//go:build amd64

package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// askedKinds are asks.c's callbacks.
var askedKinds = [...]string{"allocation", "exception", "catch", "method", "class", "to managed", "to native"}

// stood is a thread in a callback: its registers, and the CLR's report of its stack.
type stood struct {
	kind string
	tid  uint32
	base uint64
	hr   clr.HRESULT
	regs context.Registers
	clr  []clrFrame
}

// clrFrame is a call of DoStackSnapshot's callback; function 0 is a block of native frames.
type clrFrame struct{ Function, IP, SP, FP uint64 }

func readStood(r io.Reader) (s stood, err error) {
	var h struct {
		Kind, TID, Base, Result, Count uint64
		Regs                           [33]uint64
	}
	if err = binary.Read(r, binary.LittleEndian, &h); err != nil {
		return s, err
	}
	if h.Kind >= uint64(len(askedKinds)) || h.Count > 8192 {
		return s, fmt.Errorf("kind %d, %d frames", h.Kind, h.Count)
	}
	s = stood{kind: askedKinds[h.Kind], tid: uint32(h.TID), base: h.Base, hr: clr.HRESULT(h.Result),
		clr: make([]clrFrame, h.Count)}
	s.regs.Arch = context.ArchARM64
	g := &s.regs.ARM64
	copy(g.X[:], h.Regs[:31])
	g.Sp, g.PC = h.Regs[31], h.Regs[32]
	g.Known = 0x3ff<<19 | 1<<29 | 1<<30 // registers that a call preserves, and its return address
	return s, binary.Read(r, binary.LittleEndian, s.clr)
}

// against counts stacks and their methods' frames in which the CLR's list and ours agree.
type against struct {
	stacks, cut, frames, exact, calls int
	signed                            int // return addresses
	by, refused                       map[string]int
}

// met reports whether the CLR was asked in callbacks of each kind.
func (a *against) met() bool {
	return !slices.ContainsFunc(askedKinds[:], func(kind string) bool { return a.by[kind] < 3 })
}

// subsequence looks for each of the CLR's methods among our frames, in the same order: method, frame pointer,
// and address. In a method that calls native code without a stub, the CLR reports the address where the call
// is prepared, and not the stack pointer.
func (a *against) subsequence(theirs []clrFrame, ours []paused.StackFrame) error {
	k := 0
	for i, f := range theirs {
		if f.Function == 0 {
			continue
		}
		for k < len(ours) && (uint64(ours[k].Function) != f.Function || ours[k].FP != f.FP) {
			k++
		}
		if k == len(ours) {
			return fmt.Errorf("frame %d of the CLR's, method %#x at %#x, sp %#x, fp %#x, is not in ours",
				i, f.Function, f.IP, f.SP, f.FP)
		}
		switch o := &ours[k]; {
		case o.IP == f.IP && o.SP == f.SP:
			a.exact++
		case k > 0 && ours[k-1].Kind == unwind.KindNative:
			a.calls++
		default:
			return fmt.Errorf("frame %d of the CLR's is at %#x, sp %#x, ours at %#x, sp %#x", i, f.IP,
				f.SP, o.IP, o.SP)
		}
		a.frames++
		k++
	}
	return nil
}

// askGuest starts the truth program with asks.c in it. All native code is compiled to sign its return
// addresses, and the emulated processor does so.
func askGuest(t *testing.T) (*process, net.Conn) {
	t.Helper()
	needs.Command(t, "qemu-aarch64", "aarch64-linux-gnu-gcc")
	dir := tempdir.New(t)
	lib, path := filepath.Join(dir, "libasks.so"), filepath.Join(dir, "socket")
	needs.Build(t, "aarch64-linux-gnu-gcc", "-O2", "-Wall", "-Wextra", "-Werror",
		"-mbranch-protection=standard", "-shared", "-fPIC", "-pthread", "-o", lib,
		filepath.Join("testdata", "asks.c"))
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.Do(t, err)
	defer socket.Close()
	argv := append(emulator(false), need(t, "out", "samples", "arm64", "signed", "Truth"), "600")
	p := startIn(t, profiled(lib, "ASKS_SOCKET="+path), argv...)
	socket.SetDeadline(time.Now().Add(2 * time.Minute))
	conn, err := socket.Accept()
	must.Equal(t, err, nil, "the profiler does not come")
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Minute))
	return p, conn
}

// The CLR of ARM64 walks a thread in one of its callbacks, and we walk the same thread during the callback:
// the CLR's methods are ours in the same order, and the shadows agree, through native frames whose return
// addresses are signed.
func TestARM64Asked(t *testing.T) {
	guest, conn := askGuest(t)
	pid := guest.pid
	mem := must.Get(live.OpenProcess(pid))(t)
	defer mem.Close()
	maps := func() []live.Mapping { m, _ := live.MapsOf(pid); return m }
	var p *paused.Process
	k := newChecker(t)
	k.natives, k.methods = loadNatives(t, need(t, "out", "samples", "arm64", "signed", "libtruth.so")),
		map[clr.FunctionID]string{}
	a := against{by: map[string]int{}, refused: map[string]int{}}
	for a.stacks < max(1000, *armSamples) || !a.met() {
		s, err := readStood(conn)
		must.Equal(t, err, nil, "after %+v", a)
		if p == nil {
			p = paused.New(context.ArchARM64, mem, live.NewLoader(pid), maps())
			p.Reread = maps
		}
		th := p.Read(s.tid, &s.regs, live.Stood{Base: s.base})
		a.compare(t, k, p, &s, &th)
		if t.Failed() {
			return
		}
		_, err = conn.Write([]byte{1})
		must.Do(t, err)
	}
	a.verdict(t, k.sum().checked)
}

func (a *against) verdict(t *testing.T, checked int) {
	t.Helper()
	expect.Figures(t, a.cut*100 <= a.stacks && checked >= a.stacks/4 && a.signed >= a.stacks/10,
		"%d stacks the CLR has walked too, %d of them cut here; of its %d methods' frames %d at the same ip, sp and fp, %d that call native code without a stub; %d stacks compared with their threads' shadows, %d signed return addresses; asked in %v; refused %v",
		a.stacks, a.cut, a.frames, a.exact, a.calls, checked, a.signed, a.by, a.refused)
}

func (a *against) compare(t *testing.T, k *checker, p *paused.Process, s *stood, th *paused.Thread) {
	t.Helper()
	got := p.Walk(th)
	if s.hr != clr.S_OK {
		a.refused[s.kind+": "+s.hr.String()]++
		return
	}
	a.stacks++
	a.by[s.kind]++
	if got.Gap != merge.GapNone {
		a.cut++
	}
	if err := a.subsequence(s.clr, got.Frames); err != nil {
		t.Errorf("%s, %v: %v", s.kind, got.Gap, err)
		for _, f := range got.Frames {
			t.Logf("  %-8v %-13v ip %#x sp %#x fp %#x %#x %s %s", f.Kind, f.Trust, f.IP, f.SP, f.FP,
				f.Function, f.Name, filepath.Base(f.Module))
		}
		for _, f := range s.clr {
			t.Logf("  clr %#x ip %#x sp %#x fp %#x", f.Function, f.IP, f.SP, f.FP)
		}
	}
	a.sign(th.Stack, got.Frames)
	a.shadow(t, k, p, th, &got)
}

// sign counts return addresses on the stack that the processor has signed: bits are set that no address of a
// program has.
func (a *against) sign(stack memory.Run, frames []paused.StackFrame) {
	const plain = 1<<48 - 1
	at := map[uint64]bool{}
	for i := range frames {
		at[frames[i].IP] = true
	}
	for b := stack.Data; len(b) >= 8; b = b[8:] {
		if w := binary.LittleEndian.Uint64(b); w != w&plain && at[w&plain] {
			a.signed++
		}
	}
}

// shadow compares a stack with its thread's own record.
func (a *against) shadow(t *testing.T, k *checker, p *paused.Process, th *paused.Thread, got *paused.Stack) {
	t.Helper()
	sample := raw.Sample{Result: merge.Result{Gap: got.Gap}}
	sample.Capture.Stack = th.Stack
	for i := range got.Frames {
		f := &got.Frames[i]
		sample.Frames = append(sample.Frames, f.Frame)
		if f.Function != 0 {
			k.methods[f.Function] = f.Name
		}
	}
	modules := p.Modules()
	for i := range modules.Len() {
		m := modules.At(i)
		sample.Images = append(sample.Images,
			raw.Image{Start: m.Start, End: m.End, Bias: m.Bias, Path: m.Path})
	}
	k.compare(t, []*raw.Sample{&sample})
}
