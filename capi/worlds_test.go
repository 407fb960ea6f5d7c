package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	flags "flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	registers "github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/sim/worlds"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

var worldCount = flags.Int("worlds", 100,
	"how many Windows worlds TestWorlds runs through the C library; a tenth of them in the DLL")

// The C library walks and merges in the simulator's Windows worlds with only what it finds in the images: no
// frame is invented, no seed is wrong.
func TestWorlds(t *testing.T) {
	for _, p := range platforms {
		n := *worldCount
		switch p.name {
		case "linux-amd64":
		case "windows-amd64":
			n /= 10
		default:
			continue // an emulator: the same code, but slow
		}
		t.Run(p.name, func(t *testing.T) { judged(t, p, n) })
	}
}

func judged(t *testing.T, p platform, n int) {
	exe := p.worlds(t)
	var (
		mu    sync.Mutex
		tally sim.Tally
		next  atomic.Uint64
		wrong atomic.Int32
		wg    sync.WaitGroup
	)
	for range min(2, runtime.NumCPU()) {
		wg.Go(func() {
			l := p.start(t, exe, false)
			defer l.stop()
			for run := next.Add(1); run <= uint64(n) && !t.Failed(); run = next.Add(1) {
				r := l.world(run)
				if err := r.Err(); err != nil {
					wrong.Add(1)
					t.Errorf("with the C library: %v", err)
				}
				mu.Lock()
				tally.Add(&r.Tally)
				mu.Unlock()
			}
			expect.Equal(t, l.err, nil)
		})
	}
	wg.Wait()
	fmt.Printf("%s: %d worlds, %d samples, %d complete, %d of unmanaged threads, %d with gaps, %d gone, %d seeds given, %d of redirected threads, %d on a stub, %d worlds wrong\n",
		t.Name(), n, tally.Samples, tally.Complete, tally.Native, tally.Gaps, tally.Gone, tally.Seeds,
		tally.Redirected, tally.Verdicts[seed.StubOnTop], wrong.Load())
	if n >= 10 && (tally.Seeds == 0 || tally.Complete*2 < tally.Samples) {
		t.Error("nothing has happened in these worlds")
	}
	if n >= 10 && tally.Verdicts[seed.StubOnTop] == 0 || n >= 300 && tally.Redirected == 0 {
		t.Error("no thread was seen in a stub")
	}
}

// blindWorlds are worlds in which a library without the stubs fails.
var blindWorlds = []uint64{150, 225, 357, 483, 537, 616, 677, 892}

// These worlds detect a library that does not find the CLR's stubs because their code looks different. With
// the stubs, the same worlds are right.
func TestWorldsWithoutStubs(t *testing.T) {
	p := platforms[0]
	exe := p.worlds(t)
	for _, blind := range []bool{true, false} {
		l := p.start(t, exe, blind)
		for _, run := range blindWorlds {
			r := l.world(run)
			if wrong := r.Err() != nil; wrong != blind {
				t.Errorf("world %d, stubs hidden %v: %v", run, blind, r.Err())
			}
		}
		l.stop()
		expect.Equal(t, l.err, nil)
	}
}

// worlds builds testdata/worlds.c.
func (p *platform) worlds(t *testing.T) (exe string) {
	dir := p.libraries(t)
	exe = filepath.Join(dir, "worlds"+filepath.Ext(p.exe))
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe,
		"testdata/worlds.c", filepath.Join(dir, p.shared)}
	if p.goos == "linux" {
		args = append(args, "-Wl,-rpath,"+dir)
	}
	do(t, nil, p.cc, append(args, p.with...)...)
	return exe
}

// library is a process with the C library: sim.Library.
type library struct {
	cmd   *exec.Cmd
	in    *bufio.Writer
	close func() error
	out   *bufio.Reader
	blind bool
	kits  map[*sim.Kit]uint64
	kit   *sim.Kit // of the current world
	err   error    // the first error
	bytes []byte
}

func (p *platform) start(t *testing.T, exe string, blind bool) *library {
	argv := append(slices.Clone(p.runner), exe)
	if p.goos == "windows" {
		argv = []string{filepath.Join("..", "scripts", "wine.sh"), "exec", exe}
	}
	l := &library{cmd: exec.Command(argv[0], argv[1:]...), blind: blind,
		kits: map[*sim.Kit]uint64{}, bytes: make([]byte, 1<<20)}
	in, err := l.cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		out, err = l.cmd.StdoutPipe()
		l.in, l.close, l.out = bufio.NewWriterSize(in, 1<<16), in.Close, bufio.NewReaderSize(out, 1<<16)
	}
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		t.Error(err)
		l.err = err
	}
	return l
}

func (l *library) stop() {
	if l.cmd.Process != nil {
		l.close()
		l.cmd.Wait()
	}
}

// world runs one world with the library in its sampler.
func (l *library) world(run uint64) worlds.Report {
	return worlds.Run(run, worlds.Options{
		Setup: func(s *sim.Setup) {
			s.Arch = image.AMD64 // stubs are searched in x86-64 code only
			if !s.Variant.Windows() {
				s.Variant = []vm.Variant{vm.Framework20, vm.Core22Windows, vm.Net10Windows}[run%3]
			}
		},
		Prepare: func(w *sim.World) {
			w.Specials, w.CodeTables, w.Host.Library = nil, false, l
			l.kit = w.Kit
			if _, ok := l.kits[w.Kit]; !ok {
				l.kits[w.Kit] = l.add(w)
			}
		},
	})
}

// The operations and layouts of testdata/worlds.c.
const (
	opKit, opWalk, opMerge = 1, 2, 3
	contextSize            = 1232
	resultSize, frameSize  = 72, 40
)

func (l *library) give(words ...uint64) {
	for _, v := range words {
		l.in.Write(binary.LittleEndian.AppendUint64(nil, v))
	}
}

// take reads n bytes of the answer, zeros after an error.
func (l *library) take(n int) []byte {
	b := l.bytes[:n]
	clear(b)
	if _, err := io.ReadFull(l.out, b); err != nil && l.err == nil {
		l.err = fmt.Errorf("the C library's process: %w", err)
	}
	return b
}

// answer sends the request, and reads whether the call succeeded.
func (l *library) answer(call string) {
	if err := l.in.Flush(); err != nil && l.err == nil {
		l.err = err
	}
	if code := int64(binary.LittleEndian.Uint64(l.take(8))); code != 0 && l.err == nil {
		l.err = fmt.Errorf("%s answers %d", call, code)
	}
}

// add adds a kit's modules and methods to the library.
func (l *library) add(w *sim.World) uint64 {
	k := w.Kit
	l.give(opKit, 3)
	for _, im := range []*image.Image{k.System, k.CLR, k.App} {
		file := im.File
		if l.blind && im == k.CLR {
			file = l.hide(k, file)
		}
		l.give(im.Base, uint64(len(file)))
		l.in.Write(file)
	}
	var methods []uint64
	for i := range k.Code.Funcs {
		f := &k.Code.Funcs[i]
		if id, hr := w.Host.FunctionFromIP(k.Code.Base + uint64(f.RVA)); !hr.Failed() {
			methods = append(methods, k.Code.Base+uint64(f.RVA), k.Code.Base+uint64(f.End()), uint64(id))
		}
	}
	l.give(k.Code.Base, k.Code.End(), uint64(len(methods)/3))
	l.give(methods...)
	l.answer("a call that adds modules")
	return binary.LittleEndian.Uint64(l.take(8))
}

// hide makes the push in the redirect stub that of a register that functions save.
func (l *library) hide(k *sim.Kit, file []byte) []byte {
	const pushRAX, pushRBX = 0x50, 0x53
	file = bytes.Clone(file)
	if _, f := k.Lookup(sim.RedirectEntry); file[f.RVA] == pushRAX {
		file[f.RVA] = pushRBX
	} else if l.err == nil {
		l.err = fmt.Errorf("no redirect stub in the kit")
	}
	return file
}

// sample sends a sample.
func (l *library) sample(op uint64, c *clr.Capture) {
	context := make([]byte, contextSize)
	if err := registers.Write(registers.Win32AMD64, context, &c.Regs); err != nil && l.err == nil {
		l.err = err
	}
	truncated := uint64(0)
	if c.Truncated {
		truncated = 1
	}
	l.give(op, l.kits[l.kit], uint64(c.Thread.ID), c.Thread.StackLow, c.Thread.StackHigh, truncated,
		c.Stack.Addr, uint64(len(c.Stack.Data)))
	l.in.Write(context)
	l.in.Write(c.Stack.Data)
}

// result is seedwalk_result.
type result struct{ frames, stop, verdict, gap, exact, doubtful, rescan, hidden, waiting, loading int32 }

func (l *library) result() (r result) {
	b := l.take(resultSize)
	at := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) }
	return result{at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(16)}
}

// Seed implements sim.Library.
func (l *library) Seed(c *clr.Capture) seed.Verdict {
	l.sample(opWalk, c)
	l.answer("seedwalk_walk")
	r := l.result()
	regs, err := registers.Read(registers.Win32AMD64, l.take(contextSize))
	if err != nil && l.err == nil {
		l.err = err
	}
	c.Seed, c.Loading = regs, r.loading != 0
	return seed.Verdict(r.verdict)
}

// Merge implements sim.Library.
func (l *library) Merge(c *clr.Capture, out []merge.Frame) merge.Result {
	l.sample(opMerge, c)
	l.give(uint64(c.Result), uint64(len(c.Frames)))
	for i := range c.Frames {
		f := &c.Frames[i]
		l.give(uint64(f.Function), f.IP, f.SP, f.FP)
		l.give(f.Saved[:]...)
	}
	l.answer("seedwalk_merge")
	r := l.result()
	res := merge.Result{N: min(int(r.frames), len(out)), Gap: merge.Gap(r.gap),
		Verdict: seed.Verdict(r.verdict), Doubtful: int(r.doubtful),
		Hidden: int(r.hidden), Probe: int(r.waiting)}
	b := l.take(int(r.frames) * frameSize)
	for i := range out[:res.N] {
		f := b[i*frameSize:]
		at := func(k int) uint64 { return binary.LittleEndian.Uint64(f[8*k:]) }
		out[i] = merge.Frame{IP: at(0), SP: at(1), FP: at(2),
			Function: clr.FunctionID(at(3)), Module: int32(at(4)) - 1,
			Kind: unwind.Kind(f[36]), Trust: unwind.Trust(f[37]), Gap: merge.Gap(f[38]), Exact: f[39] != 0}
		if out[i].Kind == unwind.KindManaged && out[i].Trust == unwind.TrustCLR {
			res.Managed++
		}
	}
	return res
}
