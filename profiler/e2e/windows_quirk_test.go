package e2e

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/epilog"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// Differences between Wine 8 and us must have an explanation: a known fault of Wine, which package
// bench/wineunwind describes in detail, and a third implementation that agrees with us. They occur when a
// thread is stopped in an epilog, never in a caller.

// quirk is a step with different results.
type quirk struct {
	f     *pe.File
	rva   uint32
	exact bool
	fn    peamd64.RuntimeFunction
	info  peamd64.Info
	rest  epilog.Rest
}

func newQuirk(f *pe.File, rva uint32, exact bool, from *context.AMD64, mem *memory.Window) *quirk {
	q := &quirk{f: f, rva: rva, exact: exact}
	q.fn, _ = f.AMD64().Find(rva)
	q.info, _ = f.AMD64().Info(q.fn.Unwind)
	q.rest = epilog.Run(f, rva, from, mem)
	return q
}

func (q *quirk) leaves() bool { return q.rest.Leaves(q.f, q.fn, &q.info) }

func (q *quirk) ends() bool {
	return q.rest.End == epilog.Ret || q.rest.End == epilog.RetImm || q.leaves()
}

var quirks = []struct {
	name  string
	match func(q *quirk) bool
}{
	{"epilog inside the prolog", func(q *quirk) bool { return q.rva-q.fn.Begin < uint32(q.info.Prolog) && q.ends() }},
	{"tail jump", (*quirk).leaves},
	{"epilog of an entry without codes", func(q *quirk) bool { return q.info.Count == 0 && q.ends() }},
	{"bnd ret", func(q *quirk) bool { return q.rest.End == epilog.Ret && q.rest.BND }},
	{"ret imm16", func(q *quirk) bool { return q.rest.End == epilog.RetImm }},
}

// explain names the fault, "" if none explains our result.
func (q *quirk) explain(ours *context.AMD64) string {
	if !q.exact || q.info.Version != 1 || q.rest.End == epilog.None || row(&q.rest.Regs) != row(ours) {
		return ""
	}
	for i := range quirks {
		if quirks[i].match(q) {
			return quirks[i].name
		}
	}
	return ""
}

// TestWindowsQuirks: each fault explains its own step and no other, and none explains a wrong result of ours.
func TestWindowsQuirks(t *testing.T) {
	const pushRBX, late, nothing = "01 01 01 00 01 30 00 00", "01 09 01 00 01 30 00 00", "01 00 00 00"
	for _, c := range []struct {
		name, info, code string
		at               uint32
		want             string
	}{
		{"a return Wine knows", pushRBX, "53 90 5b c3", 2, ""},
		{"a jump out", pushRBX, "53 90 5b e9 00 01 00 00", 2, "tail jump"},
		{"a switch", pushRBX, "53 90 5b ff e0", 2, ""},
		{"a return in the prolog", late, "53 90 5b c3 90 90 90 90 90 90", 2, "epilog inside the prolog"},
		{"no codes", nothing, "48 83 c4 08 c3", 0, "epilog of an entry without codes"},
		{"bnd", pushRBX, "53 90 5b f2 c3", 2, "bnd ret"},
		{"arguments taken away", pushRBX, "53 90 5b c2 10 00", 2, "ret imm16"},
		{"the body", pushRBX, "53 90 5b c3", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := pictured(t, c.code, c.info)
			mem := memory.New(memory.Run{Addr: 0x8000, Data: make([]byte, 64)})
			from := context.AMD64{RIP: uint64(0x1000 + c.at), Known: context.AMD64All}
			from.GPR[context.RSP] = 0x8000
			ours := from
			amd64.StepPE(f.AMD64(), unwind.Instruction(uint64(0x1000+c.at)), &ours, mem)
			q := newQuirk(f, 0x1000+c.at, true, &from, mem)
			if got := q.explain(&ours); got != c.want {
				t.Errorf("explained by %q, want %q", got, c.want)
			}
			for i := range nonvolatile {
				bent := ours
				bent.GPR[nonvolatile[i]] ^= 8
				if got := q.explain(&bent); got != "" {
					t.Errorf("a wrong answer of ours is explained by %q", got)
				}
			}
			if q.exact = false; q.explain(&ours) != "" {
				t.Error("a caller is not in an epilog")
			}
		})
	}
}

// pictured is an image of one function, at RVA 1000h.
func pictured(t *testing.T, code, info string) *pe.File {
	t.Helper()
	raw := func(s string) []byte {
		b := must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
		return b
	}
	var entry []byte
	for _, v := range []uint32{0x1000, 0x1000 + uint32(len(raw(code))), 0x2000} {
		entry = binary.LittleEndian.AppendUint32(entry, v)
	}
	return pe.FromBlocks(pe.MachineAMD64, entry, []pe.Block{{RVA: 0x1000, Data: raw(code)}, {RVA: 0x2000, Data: raw(info)}})
}
