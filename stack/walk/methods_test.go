package walk

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// A runtime of x86-64 with methods of 0x100 bytes. Method i pushes RBX and RBP, and allocates i words. Every
// sixteenth has RBP as frame register. Every sixteenth saves an XMM register, and has no cached step.
const (
	methodsAt  = 0x7d00_0000_0000
	infoAt     = methodsAt + 0x10_0000
	methods    = 32
	behindCall = 0x80 // in each method
	stubAt     = 0x7e00_0000_0000
	stackAt    = 0x7000_0000
)

type methodSource struct{}

func (methodSource) Code(at unwind.Address, c *managed.Code) unwind.Stop {
	off := at.IP - methodsAt
	if off >= methods<<8 {
		*c = managed.Code{Kind: managed.Uncharted}
		return unwind.StopNone
	}
	begin := uint32(off) &^ 0xff
	*c = managed.Code{Kind: managed.Method, Base: methodsAt, Keep: true, Function: clr.FunctionID(1 + off>>8),
		Entry: amd64.RuntimeFunction{Begin: begin, End: begin + 0x100, Unwind: infoAt - methodsAt + begin}}
	return unwind.StopNone
}

func (methodSource) ReadAt(b []byte, addr uint64) bool {
	clear(b)
	switch i := int((addr - infoAt) >> 8); {
	case addr-methodsAt < methods<<8: // a call
		if off := behindCall - 5 - addr&0xff; off < uint64(len(b)) {
			b[off] = 0xe8
		}
	case addr >= infoAt && i < methods && addr&0xff < 16:
		info := []byte{1, 40, 4, 0, 20, 1, byte(i), 0, 10, 0x30, 5, 0x50, 0, 0, 0, 0}
		switch i % 16 {
		case 15: // mov rbp, rsp before the allocation
			info = []byte{1, 40, 5, 5, 20, 1, byte(i), 0, 15, 3, 10, 0x30, 5, 0x50, 0, 0}
		case 7: // movaps [rsp], xmm6
			info = []byte{1, 40, 6, 0, 30, 0x68, 0, 0, 20, 1, byte(i), 0, 10, 0x30, 5, 0x50}
		}
		copy(b, info[addr&0xff:])
	default:
		return false
	}
	return true
}

func (methodSource) Arch() context.Arch { return context.ArchAMD64 }
func (methodSource) Unix() bool         { return true }

// methodRuntime is the code of these methods.
type methodRuntime struct{ *managed.Tables }

func (methodRuntime) Function(at unwind.Address) (clr.FunctionID, bool) {
	off := at.Lookup() - methodsAt
	return clr.FunctionID(1 + off>>8), off < methods<<8
}

// singleSteps is a runtime without cached rules.
type singleSteps struct{ methodRuntime }

func (singleSteps) Walk(*unwind.State, *memory.Window, *unwind.Bounds,
	[]unwind.Frame) (int, []clr.FunctionID) {
	return 0, nil
}

func (s singleSteps) Step(at *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	s.Forget()
	return s.methodRuntime.Step(at, mem, b, f)
}

func newRuntime() methodRuntime { return methodRuntime{managed.New(methodSource{})} }

// methodStack is a capture of a thread in methods that called each other. The last one returns to 0.
func methodStack(rnd *rand.Rand, frames int) *Capture {
	var data []byte
	word := func(v uint64) { data = binary.LittleEndian.AppendUint64(data, v) }
	var links []int // places of RBP values, in words, and the frames' ends
	g := context.AMD64{Known: context.AMD64All}
	for n := range frames {
		i := rnd.IntN(methods)
		ip := methodsAt + uint64(i)<<8 + behindCall
		if n == 0 {
			g.RIP = ip
		} else {
			word(ip)
		}
		base := len(data)/8 + i
		if i%16 == 15 { // what has been pushed ends where RBP points to
			if len(links) == 0 {
				g.GPR[context.RBP] = stackAt + 8*uint64(base)
			} else {
				binary.LittleEndian.PutUint64(data[8*links[len(links)-1]:], stackAt+8*uint64(base))
			}
		}
		for range i {
			word(rnd.Uint64())
		}
		word(rnd.Uint64()) // RBX
		links = append(links, len(data)/8)
		word(rnd.Uint64()) // RBP
	}
	word(0)
	g.GPR[context.RSP] = stackAt
	return &Capture{Regs: context.FromAMD64(g), Stack: memory.Run{Addr: stackAt, Data: data}, Low: stackAt,
		High: stackAt + uint64(len(data)), Called: rnd.IntN(2) == 0}
}

// visited is a call of a Walker's Visit.
type visited struct {
	frame merge.Frame
	i     int
	regs  context.AMD64
	end   uint64
}

// A walk that leaves rows of methods by cached rules has the frames of a walk by single steps, shows the
// visitor the same registers, and finds the same replaced return address.
func TestMethods(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	many, single := New(context.ArchAMD64), New(context.ArchAMD64)
	runtime := newRuntime()
	many.Code, single.Code = runtime, singleSteps{newRuntime()}
	many.HijackStub, single.HijackStub = stubAt, stubAt
	ends := map[merge.Gap]int{}
	for round := range 2000 {
		c := methodStack(rnd, 1+rnd.IntN(400))
		data := c.Stack.Data
		switch rnd.IntN(8) {
		case 0:
			c.High -= uint64(rnd.IntN(len(data)))
		case 1:
			c.Stack.Data = data[:rnd.IntN(len(data))]
		case 2: // the runtime has replaced one return address, and may say which
			for at := rnd.IntN(len(data)/8) * 8; at < len(data); at += 8 {
				if ra := binary.LittleEndian.Uint64(data[at:]); ra-methodsAt < methods<<8 {
					binary.LittleEndian.PutUint64(data[at:], stubAt)
					if c.Extra = make([]byte, 64); rnd.IntN(4) > 0 {
						binary.LittleEndian.PutUint64(c.Extra[16:], ra)
						binary.LittleEndian.PutUint64(c.Extra[24:], stackAt+uint64(at))
					}
					break
				}
			}
		}
		var calls [2][]visited
		many.Visit, single.Visit = nil, nil
		if round%2 == 0 {
			for i, w := range []*Walker{many, single} {
				w.Visit = func(f *merge.Frame, n int, regs *context.Registers, end uint64, _ *memory.Window) {
					calls[i] = append(calls[i], visited{*f, n, regs.AMD64, end})
				}
			}
		}
		got, gap, _ := many.Walk(c)
		want, wantGap, _ := single.Walk(c)
		ends[gap]++
		must.Equal(t, gap, wantGap)
		must.Slices(t, got, want)
		must.Equal(t, len(calls[0]), len(calls[1]))
		for i := range calls[0] {
			a, b := &calls[0][i], &calls[1][i]
			must.True(t, a.frame == b.frame && a.i == b.i && a.end == b.end && a.regs == b.regs,
				"the visitor of frame %d got %+v, want %+v", i, a, b)
		}
		must.Equal(t, many.at.Trust, single.at.Trust)
	}
	t.Logf("ends: %v; %d replaced return addresses", ends, many.Returns)
	expect.True(t, len(ends) >= 4 && ends[merge.GapNone] > 1000 && many.Returns > 50 &&
		many.Returns == single.Returns, "%v, %d and %d replaced return addresses", ends, many.Returns,
		single.Returns)
}

// Walks of 64 methods.
func BenchmarkMethods(b *testing.B) {
	const frames = 64
	for _, c := range []struct {
		name string
		code managedCode
	}{{"rows", newRuntime()}, {"steps", singleSteps{newRuntime()}}} {
		b.Run(c.name, func(b *testing.B) {
			w, stack := New(context.ArchAMD64), methodStack(rand.New(rand.NewPCG(1, 2)), frames)
			w.Code = c.code
			b.ReportAllocs()
			for b.Loop() {
				w.Walk(stack)
			}
			must.Equal(b, w.n, frames)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*frames), "ns/frame")
		})
	}
}

// A walk that drops the middle of a deep stack has its leaf and its outermost callers, with one gap between
// them.
func TestDropsMiddle(t *testing.T) {
	const most = 64
	rnd := rand.New(rand.NewPCG(1, 3))
	for _, c := range []struct {
		name string
		code managedCode
	}{{"rows", newRuntime()}, {"steps", singleSteps{newRuntime()}}} {
		for frames := most - 4; frames < 6*most; frames++ {
			stack := methodStack(rnd, frames)
			whole, w := New(context.ArchAMD64), New(context.ArchAMD64)
			whole.Code, w.Code, w.MaxFrames, w.DropsMiddle = c.code, c.code, most, true
			want, gap, _ := whole.Walk(stack)
			must.True(t, len(want) == frames && gap == merge.GapNone, "%d frames, %v", len(want), gap)
			got, gap, _ := w.Walk(stack)
			if frames < most {
				must.Equal(t, gap, merge.GapNone)
				must.Slices(t, got, want)
				continue
			}
			must.True(t, gap == merge.GapLimit && len(got) < most && len(got) > most*5/8, "%s: %v, %d frames",
				c.name, gap, len(got))
			must.Slices(t, got[:most/2], want[:most/2])
			g, last := got[most/2], got[most/2+1:]
			must.True(t, g.Kind == unwind.KindGap && g.Gap == merge.GapLimit && g.SP == want[most/2].SP,
				"%+v", g)
			must.Slices(t, last, want[frames-len(last):])
		}
		stack, w := methodStack(rnd, 2*most), New(context.ArchAMD64)
		w.Code, w.MaxFrames = c.code, most
		got, gap, _ := w.Walk(stack)
		must.True(t, gap == merge.GapLimit && len(got) == most && got[most-1].Kind == unwind.KindGap,
			"all frames are kept: %v, %d frames", gap, len(got))
	}
}

// A hostile stack can have all its frames in a function with the longest program of call frame instructions.
// The walk then takes seconds, and not minutes.
func TestWorkOfStack(t *testing.T) {
	const most = 1 << 31
	expect.True(t, uint64(maxFrames)*cfi.MaxInstructions <= most, "%d frames of %d instructions", maxFrames,
		cfi.MaxInstructions)
}
