package e2e

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/epilog"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// This test uses a special profiler library (testprof/oracle/oracle_windows.c). While a thread is suspended,
// Wine's RtlVirtualUnwind also walks every block of unmanaged frames, from the same registers. The test
// compares its frames with the product's: rip, rsp, and every nonvolatile register of every frame.

// oracleWalk is one walk by RtlVirtualUnwind; see testprof/oracle/oracle.h.
type oracleWalk struct {
	oracleHead
	Frames [][10]uint64 // rip rsp rbx rbp rsi rdi r12 r13 r14 r15
}

type oracleHead struct {
	Thread, Block                       uint64
	Stack                               uint64 // FNV-1a of the copied stack
	Own, First, OwnAgain, Again, Lookup uint64 // nanoseconds
	Stop                                oracleStop
	Count                               uint64
	XMM                                 [10]context.XMM // of the last frame, of block 0
	Moves                               uint64
	// words of the stack that the collector has written since the copy
	Moved [16]struct{ Was, Is uint64 }
}

// oracleStop is why a walk ended.
type oracleStop uint64

const (
	oracleNoImage oracleStop = iota
	oracleEnd
	oracleBounds
	oracleNoProgress
	oracleFull
)

// readOracle reads the walks, one group per suspension.
func readOracle(t *testing.T, path string) (tries [][]oracleWalk) {
	t.Helper()
	for b := []byte(readFile(t, path)); len(b) > 0; {
		var w oracleWalk
		n, err := binary.Decode(b, binary.LittleEndian, &w.oracleHead)
		must.True(t, err == nil && w.Count <= 1000 && w.Moves <= uint64(len(w.Moved)),
			"%d walks of the oracle, then %d frames, %v", len(tries), w.Count, err)
		w.Frames = make([][10]uint64, w.Count)
		k, err := binary.Decode(b[n:], binary.LittleEndian, w.Frames)
		if err != nil {
			break // truncated by the end of the process
		}
		b = b[n+k:]
		if w.Block == 0 {
			tries = append(tries, nil)
		}
		if len(tries) > 0 {
			tries[len(tries)-1] = append(tries[len(tries)-1], w)
		}
	}
	return tries
}

// nonvolatile are the registers of an oracle's frame after rip and rsp.
var nonvolatile = [...]int{context.RBX, context.RBP, context.RSI, context.RDI, context.R12,
	context.R13, context.R14, context.R15}

// opinion compares walks.
type opinion struct {
	files         map[string]*pe.File
	tables        map[*raw.Image]*module.Table
	u             *amd64.Unwinder
	walks, frames int // compared
	seeds         int // of them, walks that ended in a seed: XMM6-XMM15 compared too
	unmatched     int // samples whose suspension the oracle did not see
	short         int // walks that the oracle ended early because it was uncertain
	differ, shown int
	explained     map[string]int      // differences by the fault of Wine that explains them
	times         [timeCount][]uint64 // nanoseconds of walks of blocks on top
	sample        *raw.Sample         // the last, for the test of the comparison itself
	walked        *oracleWalk
}

func newOpinion() *opinion {
	return &opinion{files: map[string]*pe.File{}, tables: map[*raw.Image]*module.Table{},
		u: managed.NewAMD64(), explained: map[string]int{}}
}

// all compares the walks of all samples.
func (o *opinion) all(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk) {
	t.Helper()
	for i := range tries {
		o.time(&tries[i][0])
	}
	at := 0
	for _, s := range samples {
		if s.Capture.Status != clr.Captured {
			continue
		}
		i := at
		for i < len(tries) && !tryOf(s, tries[i]) {
			i++
		}
		if i == len(tries) {
			o.unmatched++
			continue
		}
		at = i + 1
		for k := range tries[i] {
			w := &tries[i][k]
			o.walk(t, s, w)
			if w.Block == 0 && w.Count > 4 {
				o.sample, o.walked = s, w
			}
		}
	}
}

// tryOf reports whether a suspension is the one of s.
func tryOf(s *raw.Sample, try []oracleWalk) bool {
	c, sum := &s.Capture, fnv.New64a()
	if try[0].Thread != uint64(c.Thread.ID) || try[0].Frames[0] != row(&c.Regs.AMD64) {
		return false
	}
	sum.Write(c.Stack.Data)
	return try[0].Stack == sum.Sum64()
}

// row is a frame in the oracle's format.
func row(r *context.AMD64) (w [10]uint64) {
	w[0], w[1] = r.RIP, r.SP()
	for i, reg := range nonvolatile {
		w[2+i] = r.GPR[reg]
	}
	return w
}

// walk makes our walk from the registers of one walk of the oracle. It compares our walk with the oracle's,
// and with the frames of the merged stack.
func (o *opinion) walk(t *testing.T, s *raw.Sample, w *oracleWalk) {
	t.Helper()
	regs, at := s.Capture.Regs.AMD64, 0
	if w.Block > 0 {
		if w.Block > uint64(len(s.Capture.Frames)) {
			o.fault(t, s, "the oracle's block %d is not the CLR's", w.Block)
			return
		}
		f := &s.Capture.Frames[w.Block-1]
		regs = f.Registers(context.ArchAMD64).AMD64
		at = slices.IndexFunc(s.Frames, func(g merge.Frame) bool {
			return g.Kind == unwind.KindNative && g.IP == f.IP && g.SP == f.SP
		})
	}
	if at < 0 || len(s.Frames) == 0 {
		o.fault(t, s, "the block at frame %d of the CLR's is not in the stack", w.Block-1)
		return
	}
	o.walks++
	table := o.table(t, s)
	o.u.SetTable(table)
	mem := memory.New(s.Capture.Stack)
	bounds := unwind.Bounds{Low: s.Capture.Thread.StackLow, High: s.Capture.Thread.StackHigh}
	exact, stop := w.Block == 0, unwind.StopNone
	var from context.AMD64 // of the frame above
	var in *module.Module
	for i := range w.Frames {
		theirs := w.Frames[i]
		// Wine's reads the same 0, and ends there
		ended := stop == unwind.EndOfStack || stop == unwind.NullReturn
		if ended && theirs[0] == 0 && i == len(w.Frames)-1 {
			return
		}
		if stop != unwind.StopNone {
			o.fault(t, s, "block %d, frame %d: our walk stops with %v, Wine's goes on to %#x", w.Block, i,
				stop, theirs)
			return
		}
		o.collected(&regs, theirs, w)
		if d := diff(&regs, theirs); d != "" {
			if why := explain(in, i == 1 && w.Block == 0, &from, &regs, mem); why != "" {
				o.explained[why]++ // from here on the two walk different stacks
			} else {
				o.fault(t, s, "block %d, frame %d: %s", w.Block, i, d)
			}
			return
		}
		o.frames++
		if table.Find(unwind.Address{IP: regs.RIP, Exact: exact}.Lookup()) < 0 {
			if i != len(w.Frames)-1 || w.Stop != oracleNoImage {
				o.fault(t, s, "block %d: our walk is in no image after %d frames, Wine's goes on", w.Block, i)
			} else {
				o.seed(t, s, w)
			}
			return
		}
		if j := at + i; j >= len(s.Frames) || s.Frames[j].Kind != unwind.KindNative ||
			s.Frames[j].IP != regs.RIP || s.Frames[j].SP != regs.SP() || s.Frames[j].FP != regs.FP() {
			o.fault(t, s, "block %d, frame %d: not in the merged stack at %d", w.Block, i, j)
			return
		}
		from, in = regs, table.At(table.Find(unwind.Address{IP: regs.RIP, Exact: exact}.Lookup()))
		var f unwind.Frame
		to := context.FromAMD64(regs)
		here := unwind.State{Regs: &to, Exact: exact, Trust: unwind.TrustContext}
		stop = o.u.Step(&here, mem, &bounds, &f)
		regs, exact = to.AMD64, here.Exact
	}
	o.short++ // up to the end of its walk they agree
	if o.short <= 3 {
		t.Logf("RtlVirtualUnwind's walk of block %d ends with %d after %d frames\n%s", w.Block,
			w.Stop, w.Count, dumpWindows(s))
	}
}

// explain is called if Wine's step from a frame in m differs from ours. It returns the name of the known
// fault of Wine 8 at that place, and "" if there is no such fault or our registers are not those that the
// processor gets by running the code. The faults occur when a thread is stopped in an epilog, never in a
// caller. Package bench/wineunwind tests each of them.
func explain(m *module.Module, exact bool, from, ours *context.AMD64, mem *memory.Window) string {
	if m == nil || m.PE == nil || !exact {
		return ""
	}
	site := epilog.At(m.PE, uint32(from.RIP-m.Bias), from, mem)
	switch {
	case site.End == epilog.None || site.Info.Version != 1 || row(&site.Regs) != row(ours):
		return ""
	case site.End == epilog.RetImm && site.WineFault() == "":
		return "ret imm16"
	}
	return site.WineFault()
}

// collected uses Wine's value for registers whose saved words a collector has written between our copy of the
// stack and Wine's walk: it moves objects while the thread is stopped, and both values are right.
func (o *opinion) collected(ours *context.AMD64, theirs [10]uint64, w *oracleWalk) {
	for i, reg := range nonvolatile {
		for _, m := range w.Moved[:w.Moves] {
			if mine := &ours.GPR[reg]; *mine != theirs[2+i] && *mine == m.Was && theirs[2+i] == m.Is {
				*mine = m.Is
				o.explained["the collector has moved an object"]++
			}
		}
	}
}

// diff names the first register in which theirs differs from ours. Registers that we do not know are ignored.
func diff(ours *context.AMD64, theirs [10]uint64) string {
	mine := row(ours)
	for i, name := range [...]string{"rip", "rsp", "rbx", "rbp", "rsi", "rdi", "r12", "r13", "r14", "r15"} {
		known := i < 2 || ours.Known>>nonvolatile[i-2]&1 == 1
		if mine[i] != theirs[i] || !known {
			return fmt.Sprintf("%s %#x (known: %v), Wine %#x", name, mine[i], known, theirs[i])
		}
	}
	return ""
}

// seed compares the registers that the product passed to the CLR.
func (o *opinion) seed(t *testing.T, s *raw.Sample, w *oracleWalk) {
	t.Helper()
	if w.Block > 0 || s.Result.Verdict != seed.Found || !s.Capture.Seeded {
		return
	}
	o.seeds++
	ours, theirs := s.Capture.Seed.AMD64, w.Frames[len(w.Frames)-1]
	o.collected(&ours, theirs, w)
	if d := diff(&ours, theirs); d != "" {
		o.fault(t, s, "the seed: %s", d)
	} else if ours.XMM != w.XMM || ours.Known>>16 != 0x3ff {
		o.fault(t, s, "the seed: XMM %#x, Wine %#x", ours.XMM, w.XMM)
	}
}

func (o *opinion) fault(t *testing.T, s *raw.Sample, format string, args ...any) {
	t.Helper()
	o.differ++
	if o.shown++; o.shown <= 8 {
		t.Logf("%s\nverdict %v, %v\n%s", fmt.Sprintf(format, args...), s.Result.Verdict,
			s.Capture.Result, dumpWindows(s))
	}
}

// print reports the number of comparisons and the time of both walks.
func (o *opinion) print(t *testing.T) {
	t.Helper()
	t.Logf("RtlVirtualUnwind: %d walks, %d frames, %d seeds compared, %d differ unexplained, explained %v; %d walks it could not end, %d samples it did not see",
		o.walks, o.frames, o.seeds, o.differ, o.explained, o.short, o.unmatched)
	for i := range o.times {
		slices.Sort(o.times[i])
		t.Logf("%-50s µs p50 %6.2f  p99 %8.2f  max %9.2f", timeNames[i], o.micros(i, 0.5),
			o.micros(i, 0.99), o.micros(i, 1))
	}
	t.Logf("our walk takes %.2f (p50) and %.2f (p99) of RtlVirtualUnwind's time, %.2f and %.2f of it with RtlLookupFunctionEntry, both repeated",
		o.micros(ownAgain, 0.5)/o.micros(wineAgain, 0.5), o.micros(ownAgain, 0.99)/o.micros(wineAgain, 0.99),
		o.micros(ownAgain, 0.5)/o.micros(wineLookup, 0.5),
		o.micros(ownAgain, 0.99)/o.micros(wineLookup, 0.99))
}

// The times of a walk. Our first walk finds memory that is not in the cache; RtlVirtualUnwind's first follows
// it.
const (
	ownFirst = iota
	wineFirst
	ownAgain
	wineAgain
	wineLookup
	timeCount
)

var timeNames = [timeCount]string{"our walk, first", "RtlVirtualUnwind, second, with checks",
	"our walk, repeated", "RtlVirtualUnwind, repeated", "RtlVirtualUnwind and RtlLookupFunctionEntry"}

func (o *opinion) time(w *oracleWalk) {
	if w.Count < 2 {
		return
	}
	for i, n := range [timeCount]uint64{w.Own, w.First, w.OwnAgain, w.Again, w.Again + w.Lookup} {
		o.times[i] = append(o.times[i], n)
	}
}

// micros is a quantile of sorted times.
func (o *opinion) micros(which int, q float64) float64 {
	sorted := o.times[which]
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(q*float64(len(sorted)-1))]) / 1000
}

// verdict checks the requirements for want samples.
func (o *opinion) verdict(t *testing.T, want int) {
	t.Helper()
	if o.differ > 0 || o.unmatched > want/100 || o.short > max(want, o.walks)/100 {
		t.Errorf("%d walks differ from RtlVirtualUnwind's, %d samples were not compared, %d walks not to their end", o.differ, o.unmatched, o.short)
	}
	must.True(t, o.walks >= want && o.seeds != 0 && o.sample != nil,
		"%d walks compared, %d seeds, want %d", o.walks, o.seeds, want)
	o.sees(t)
}

// sees changes every register of a frame in turn: the comparison must notice each.
func (o *opinion) sees(t *testing.T) {
	t.Helper()
	for i := range len(nonvolatile) + 2 {
		bent := *o.walked
		bent.Frames = slices.Clone(bent.Frames)
		bent.Frames[3][i] ^= 8
		again := *o
		again.differ, again.shown = 0, 1000
		again.walk(t, o.sample, &bent)
		expect.Equal(t, again.differ, 1, "a wrong register, %d of the oracle's, is not seen", i)
	}
}
