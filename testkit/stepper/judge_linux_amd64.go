package stepper

import (
	"fmt"
	"sort"
	"strings"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Tally counts points by the result of their walk.
type Tally struct {
	Points    int
	Complete  int // all frames are right, and the walk ends with EndOfStack
	Right     int // all frames are right, but the walk did not recognize the root
	Short     int // all frames are right, but the walk ended before the root
	Unknown   int // some frame has an unknown register; also counted above
	Doubtful  int // the first wrong frame is marked as doubtful
	SureWrong int // the first wrong frame is not marked
	// Disputed counts instructions of longjmp, which are not among Points: its unwind data describe its
	// target instead of its caller.
	Disputed int
	Bad      map[string]int // SureWrong by place and difference
	Doubts   map[string]int // Doubtful by place and difference
	Ends     map[string]int // Short by place and reason
}

func (t *Tally) String() string {
	return fmt.Sprintf("%d points: complete %d, right to an unknown root %d, short %d, doubtful %d, wrong without doubt %d; registers unknown in %d, disputed %d",
		t.Points, t.Complete, t.Right, t.Short, t.Doubtful, t.SureWrong, t.Unknown, t.Disputed)
}

// Worst lists the n highest counts of a map.
func Worst(m map[string]int, n int) string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		return m[keys[i]] > m[keys[j]] ||
			m[keys[i]] == m[keys[j]] && keys[i] < keys[j]
	})
	var b strings.Builder
	for _, k := range keys[:min(n, len(keys))] {
		fmt.Fprintf(&b, "%8d %s\n", m[k], k)
	}
	return b.String()
}

// Judge walks each point and counts the results.
type Judge struct {
	Tally
	Guess bool                 // as unwind.Bounds has it
	Blind bool                 // the walk gets only sp and ip, as for a blocked thread
	Edit  func(*module.Module) // changes modules before the walks, such as by removing unwind data
	Keep  uint32               // the registers to compare, as bits of Known; 0: System V's
	u     *amd64.Unwinder
	l     *live.Loader
	gen   uint32

	parts   map[*elf.File][]elf.Symbol
	machine cfi.Machine
	row     cfi.Row
}

const systemV = 1<<context.RBX | 1<<context.RBP | 1<<context.R12 | 1<<context.R13 | 1<<context.R14 |
	1<<context.R15

// NewJudge returns a Judge with a new unwinder.
func NewJudge() *Judge {
	return &Judge{u: amd64.New(), Keep: systemV, parts: map[*elf.File][]elf.Symbol{},
		Tally: Tally{Bad: map[string]int{}, Doubts: map[string]int{}, Ends: map[string]int{}}}
}

// Loader makes module tables for several judges of one run.
func (j *Judge) table(p *Point) {
	if j.l == nil {
		j.l = live.NewLoader(0)
	}
	t := j.l.Table(p.Maps)
	if j.Edit != nil {
		var mods []module.Module
		for i := range t.Len() {
			m := *t.At(i)
			j.Edit(&m)
			mods = append(mods, m)
		}
		j.gen++
		t = module.NewTable(1<<30+j.gen, mods, nil)
	}
	j.u.SetTable(t)
}

// Visit walks a point. Run calls it.
func (j *Judge) Visit(p *Point) {
	if p.Fresh || j.u.Table().Len() == 0 {
		j.table(p)
	}
	if j.leads(p.Regs.IP) {
		j.Disputed++
		return
	}
	j.Points++
	high := p.Low + uint64(len(p.Stack))
	b := unwind.Bounds{Low: p.Low &^ 0xfff, High: high, Guess: j.Guess, MaxSteps: 1 << 16}
	mem := memory.New(memory.Run{Addr: p.Low, Data: p.Stack})
	regs := amd64.Registers{RIP: p.Regs.IP, GPR: p.Regs.GPR, Known: context.AMD64All}
	if j.Blind {
		regs, b.Follow = amd64.Registers{RIP: p.Regs.IP, Known: 1 << rsp}, true
		regs.GPR[rsp] = p.Regs.GPR[rsp]
	}
	all, unknown := context.FromAMD64(regs), false
	at := unwind.Interrupted(&all)
	for i := len(p.Calls) - 1; ; i-- {
		var f unwind.Frame
		if stop := j.u.Step(&at, mem, &b, &f); stop != unwind.StopNone {
			j.ended(p, i, stop, at.Trust, f.IP)
			break
		}
		was := f.IP
		if i < 0 {
			j.wrong(p, at.Trust, was, "a frame above the root")
			break
		}
		part := j.part(f.IP)
		// The unwind data of __morestack omit the call in its prolog.
		if strings.HasPrefix(part, morestack) && i > 0 && all.AMD64.GPR[rsp] != p.Calls[i].At+8 {
			i--
		}
		want, keep := p.Calls[i].Frame(), j.Keep
		if strings.HasPrefix(part, outlinedPrefix) {
			keep = 0
		}
		if what := differs(&all.AMD64, &want, keep, &unknown); what != "" {
			j.wrong(p, at.Trust, was, what)
			break
		}
	}
	if unknown {
		j.Unknown++
	}
}

// leads reports whether the unwind data at ip have the return address in a register. In this way, glibc's
// longjmp describes the frame that it is about to enter.
func (j *Judge) leads(ip uint64) bool {
	i := j.u.Table().Find(ip)
	if i < 0 || j.u.Table().At(i).CFI == nil {
		return false
	}
	m := j.u.Table().At(i)
	return j.machine.Row(m.CFI, ip-m.Bias, &j.row) == cfi.None && j.row.Regs[cfi.AMD64RA].Kind == cfi.Register
}

// outlinedPrefix begins the names of the functions into which clang moves code that several functions share.
// They change registers on behalf of their callers.
const outlinedPrefix = "OUTLINED_FUNCTION"

// morestack begins the names of libgcc's functions that switch to another stack.
const morestack = "__morestack"

// part returns the name of the function at ip if it is a part of its caller, "" otherwise.
func (j *Judge) part(ip uint64) string {
	i := j.u.Table().Find(ip)
	if i < 0 || j.u.Table().At(i).ELF == nil {
		return ""
	}
	m := j.u.Table().At(i)
	all, ok := j.parts[m.ELF]
	if !ok {
		for s := range m.ELF.Symbols(false) {
			if strings.HasPrefix(s.Name, outlinedPrefix) || strings.HasPrefix(s.Name, morestack) {
				all = append(all, s)
			}
		}
		j.parts[m.ELF] = all
	}
	for _, s := range all {
		if ip-m.Bias-s.Value < s.Size {
			return s.Name
		}
	}
	return ""
}

// ended counts a walk that ended i calls before the root.
func (j *Judge) ended(p *Point, i int, stop unwind.Stop, trust unwind.Trust, ip uint64) {
	switch {
	case i < 0 && stop == unwind.EndOfStack:
		j.Complete++
	case i < 0:
		j.Right++
		j.Ends["root: "+j.at(ip)+" "+stop.String()]++
	case stop == unwind.EndOfStack && i < 4 && j.starts(ip):
		j.Complete++
	case stop == unwind.EndOfStack:
		j.wrong(p, trust, ip, "end-of-stack")
	default:
		j.Short++
		j.Ends[j.at(ip)+" "+stop.String()]++
	}
}

// starts reports whether ip is in a C library without unwind data whose functions that end threads are known.
// Walks end by design at its call of main, although other code of the library has called that function.
func (j *Judge) starts(ip uint64) bool {
	i := j.u.Table().Find(ip)
	return i >= 0 && j.u.Table().At(i).Endings != [2]uint64{}
}

func differs(got *amd64.Registers, want *Regs, keep uint32, unknown *bool) string {
	switch {
	case got.RIP != want.IP:
		return "ip"
	case got.GPR[rsp] != want.GPR[rsp]:
		return "sp"
	}
	for i := range got.GPR {
		if keep>>i&1 == 0 {
			continue
		}
		if got.Known>>i&1 == 0 {
			*unknown = true
		} else if got.GPR[i] != want.GPR[i] {
			return fmt.Sprintf("register %d", i)
		}
	}
	return ""
}

func (j *Judge) wrong(p *Point, trust unwind.Trust, ip uint64, what string) {
	if trust.Doubtful() {
		j.Doubtful++
		j.Doubts[j.at(ip)+" "+what+" by "+trust.String()]++
		return
	}
	j.SureWrong++
	j.Bad[j.at(ip)+" "+what+" by "+trust.String()]++
}

// at formats a place: a file and an address in it.
func (j *Judge) at(ip uint64) string {
	i := j.u.Table().Find(ip)
	if i < 0 {
		return fmt.Sprintf("%#x", ip)
	}
	m := j.u.Table().At(i)
	return fmt.Sprintf("%s+%#x", m.Path[strings.LastIndexByte(m.Path, '/')+1:], ip-m.Bias)
}
