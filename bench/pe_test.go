package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/pevec"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// Stacks of Windows functions. The unwind information and the code are real, of
// coreclr.dll or else of the recorded test programs; the stacks are made: each
// frame is as big as its function says, and its return address lies in the
// middle of another.

const (
	peStack  = 0x7000_0000
	peRoom   = 1 << 20
	peDeepRA = 0xdead_0000 // where the last frame returns to: no module
)

// coreclrDLL is where the tests' Windows runtime is fetched to.
const coreclrDLL = "../.cache/dotnet-*-win/package/shared/*/*/coreclr.dll"

// peFunctions are the modules that functions are taken from.
type peFunctions struct {
	table *module.Table
	from  string
}

func loadPE(tb testing.TB) peFunctions {
	tb.Helper()
	found, err := filepath.Glob(coreclrDLL)
	if err == nil && len(found) > 0 {
		m := module.LoadPE(1, found[0], 0x1_8000_0000, 0)
		if m.PE != nil {
			return peFunctions{module.NewTable(1, []module.Module{m}, nil), "coreclr.dll"}
		}
	}
	var mods []module.Module
	_, err = pevec.Each("amd64-native.jsonl.gz", func(v *pevec.Vector) error {
		base := uint64(len(mods)+1) << 33
		mods = append(mods, module.Module{Start: base, End: base + 1<<32, Bias: base, PE: v.Image()})
		return nil
	})
	if errors.Is(err, pevec.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: ", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return peFunctions{module.NewTable(1, mods, nil), "test programs"}
}

// any gives a module and the RVA of the middle of one of its functions.
func (p *peFunctions) any(rnd *rand.Rand) (*module.Module, uint32) {
	m := p.table.At(rnd.IntN(p.table.Len()))
	fn := m.PE.EntryAMD64(rnd.IntN(m.PE.CountAMD64()))
	return m, fn.Begin + (fn.End-fn.Begin)/2
}

// stack makes a walk of so many frames. Every word of the stack is an address
// a little above itself, so that a saved frame register is one.
func (p *peFunctions) stack(rnd *rand.Rand, frames int) peer.Walk {
	data := make([]byte, peRoom)
	for i := uint64(0); i < peRoom; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], peStack+i+0x100)
	}
	w := peer.Walk{Limit: frames, Runs: []memory.Run{{Addr: peStack, Data: data}}}
	mem := memory.New(w.Runs...)
	w.Regs.Known = context.AMD64All
	w.Regs.GPR[context.RSP] = peStack + 0x100
	w.Regs.GPR[context.RBP] = peStack + 0x200
	regs, ra := w.Regs, &w.Regs.RIP
	for n := 0; n < frames; {
		m, rva := p.any(rnd)
		to := regs
		to.RIP = m.Bias + uint64(rva)
		if !leaves(m.PE, rva, &to, mem) {
			continue
		}
		if n == 0 {
			*ra = m.Bias + uint64(rva)
		} else {
			binary.LittleEndian.PutUint64(data[regs.SP()-8-peStack:], m.Bias+uint64(rva))
		}
		regs = to
		n++
	}
	binary.LittleEndian.PutUint64(data[regs.SP()-8-peStack:], peDeepRA)
	return w
}

// leaves steps out of a function if it is one that can stand on a made stack:
// unwind information applies, and the frame is neither huge nor empty.
func leaves(f *pe.File, rva uint32, regs *amd64.Registers, mem *memory.Window) bool {
	sp := regs.SP()
	res, stop := amd64.StepPE(f, rva, false, regs, mem)
	grown := regs.SP() - sp
	return stop == unwind.StopNone && res.Part != amd64.PELeaf && !res.Machine && grown >= 8 && grown < 4096
}

// side makes our side of some stacks.
func (p *peFunctions) side(stacks, frames int) *side {
	rnd, f := rand.New(rand.NewPCG(1, uint64(frames))), &peer.File{}
	u := amd64.New()
	u.SetTable(p.table)
	s := &side{file: f, us: []*amd64.Unwinder{u}}
	for range stacks {
		w := p.stack(rnd, frames)
		f.Walks = append(f.Walks, w)
		s.mems = append(s.mems, memory.New(w.Runs...))
	}
	return s
}

// The made stacks are walked to their ends, the same with cached rules and
// without.
func TestPEStacks(t *testing.T) {
	p := loadPE(t)
	for _, frames := range []int{8, 32, 128} {
		s := p.side(16, frames)
		for i := range s.file.Walks {
			var out [2][]unwind.Frame
			for k, off := range []bool{false, true} {
				s.empty(off)
				if n := s.walk(i); n != frames {
					t.Fatalf("%d frames of %d", n, frames)
				}
				out[k] = append(out[k], s.out[:frames]...)
			}
			for k := range out[0] {
				if out[0][k] != out[1][k] {
					t.Fatalf("frame %d: %+v with the cache, %+v without", k, out[0][k], out[1][k])
				}
			}
		}
	}
}

// BenchmarkPE is our walk of PE stacks beside our walk of ELF stacks of the
// same depth: no native unwinder of PE runs here.
func BenchmarkPE(b *testing.B) {
	p := loadPE(b)
	b.Log("functions of ", p.from)
	_, deep := programs(b)
	for _, frames := range []int{8, 32, 128} {
		path := filepath.Join(b.TempDir(), "deep")
		record(b, deep, path, frames)
		f, err := peer.Read(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Walks[0].Limit = frames
		elf, one := newSide(f), p.side(1, frames)
		for _, mode := range []peer.Mode{peer.Warm, peer.Cold, peer.Off} {
			name := fmt.Sprintf("pe-%d/%s", frames, mode)
			b.Run(name, func(b *testing.B) {
				r := against(name, "ours-elf", frames, one.ours(mode), elf.ours(mode))
				one.again(b, mode)
				r.report(b)
			})
		}
		if frames == 32 {
			many := p.side(100, frames)
			b.Run("pe-100x32/warm", func(b *testing.B) {
				r := against("pe-100x32/warm", "ours-elf", 100*frames, many.ours(peer.Warm), elf.ours(peer.Warm))
				many.again(b, peer.Warm)
				r.report(b)
			})
		}
	}
}
