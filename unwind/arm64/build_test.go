package arm64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind/module"
)

const (
	textBias  = walktest.TextBias
	textLo    = walktest.TextLo
	fnSize    = walktest.FnSize
	codeLo    = textBias + 0x8000 // code without unwind data
	codeCall  = codeLo + 0x804    // a believable return address
	stackLow  = walktest.StackLow
	stackSize = walktest.StackSize
	sp0       = walktest.SP0
	jitLo     = walktest.JitLo
	jitHi     = walktest.JitHi
	jitIP     = walktest.JitIP
)

type (
	fn    = walktest.Fn
	stack = walktest.Stack
)

var newStack, at = walktest.NewStack, walktest.At

// makeTable loads functions into a module at textBias, one after another from
// textLo, and code without unwind data at codeLo, with a managed range beside.
func makeTable(tb testing.TB, code []uint32, fns ...fn) *module.Table {
	tb.Helper()
	m := module.Module{Start: textBias, End: textBias + 0x10000, Bias: textBias, ELF: image(tb, code),
		CFI: walktest.CFI(tb, context.ArchARM64, fns...)}
	return module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}})
}

// image is an ELF file whose code at codeLo is code, with a call in front of
// codeCall.
func image(tb testing.TB, code []uint32) *elf.File {
	tb.Helper()
	text := make([]byte, 0x1000)
	for i, w := range code {
		binary.LittleEndian.PutUint32(text[4*i:], w)
	}
	binary.LittleEndian.PutUint32(text[codeCall-4-codeLo:], 0x94000000)
	return must.Get(elf.New(elfasm.Code(elfasm.ARM64, codeLo-textBias, text), "code"))(tb)
}

// unwinder returns an unwinder that has used all its storage in an earlier step, so that tests notice code
// that reads what it has not written.
func unwinder(t *module.Table) *Unwinder {
	u := New()
	u.follower = follower{goal: 1, uncalled: true, sp: 1, ok: true, returns: 1, torn: true}
	u.SetTable(t)
	return u
}

// start returns registers with a value of its own in each.
func start(pc, sp uint64) Registers {
	r := Registers{PC: pc, Sp: sp, Known: 1<<31 - 1 | 0xff<<32}
	for i := range r.X {
		r.X[i] = 0x2222_0000 + uint64(i)
	}
	for i := range r.D {
		r.D[i] = 0x3333_0000 + uint64(i)
	}
	r.X[regLR] = codeCall
	return r
}
