package arm64

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/armrun"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Functions of .NET 10.0.9's own assembly for linux-arm64, whose call frame information
// is wrong in epilogs: their code and what their FDEs say.
var wrongRows = []struct {
	name           string
	code, program  string
	prolog, epilog int // instructions at which the frame is undone
}{
	{
		"the last row is of x29",
		"a9b57bfd 910003fd a90153f3 a9025bf5 a90363f7 a9046bf9 a90573fb 910003e2 d2800001 97fa97b6 " +
			"a94153f3 a9425bf5 a94363f7 a9446bf9 a94573fb a8cb7bfd d65f03c0",
		"44 0e b0 01 9d 2c 9e 2a 44 0d 1d 44 93 28 94 26 44 95 24 96 22 44 97 20 98 1e 44 99 1c 9a 1a 44 " +
			"9b 18 9c 16 50 d3 d4 44 d5 d6 44 d7 d8 44 d9 da 44 db dc 44 dd de 0e 00",
		10, 7,
	},
	{
		"ThePreStub: SP is raised first",
		"a9b57bfd 910003fd a90153f3 a9025bf5 a90363f7 a9046bf9 a90573fb d10203ff f90077e8 a90f07e0 " +
			"a9100fe2 a91117e4 a9121fe6 ad0007e0 ad010fe2 ad0217e4 ad031fe6 910203e0 aa0c03e1 97f85efd " +
			"aa0003e9 ad4007e0 ad410fe2 ad4217e4 ad431fe6 f94077e8 a94f07e0 a9500fe2 a95117e4 a9521fe6 " +
			"910203ff a94153f3 a9425bf5 a94363f7 a9446bf9 a94573fb a8cb7bfd d61f0120",
		"44 0e b0 01 9d 2c 9e 2a 44 0d 1d 44 93 28 94 26 44 95 24 96 22 44 97 20 98 1e 44 99 1c 9a 1a 44 " +
			"9b 18 9c 16 02 60 0e 30 44 d3 d4 44 d5 d6 44 d7 d8 44 d9 da 44 db dc 44 dd de 0e 80 ff ff ff ff " +
			"ff ff ff ff 01",
		20, 17,
	},
	{
		"a second way out has the rows of the first",
		"a9b57bfd 910003fd a90153f3 a9025bf5 a90363f7 a9046bf9 a90573fb d10203ff f90077e8 a90f07e0 " +
			"a9100fe2 a91117e4 a9121fe6 ad0007e0 ad010fe2 ad0217e4 ad031fe6 910203e0 aa0b03e1 aa0903e2 " +
			"aa0a03e3 d2800004 97f86943 b5000140 f9407be0 910203ff a94153f3 a9425bf5 a94363f7 a9446bf9 " +
			"a94573fb a8cb7bfd d65f03c0 aa0003ec ad4007e0 ad410fe2 ad4217e4 ad431fe6 f94077e8 a94f07e0 " +
			"a9500fe2 a95117e4 a9521fe6 910203ff a94153f3 a9425bf5 a94363f7 a9446bf9 a94573fb a8cb7bfd " +
			"d61f0180",
		"44 0e b0 01 9d 2c 9e 2a 44 0d 1d 44 93 28 94 26 44 95 24 96 22 44 97 20 98 1e 44 99 1c 9a 1a 44 " +
			"9b 18 9c 16 02 4c 0e 30 44 d3 d4 44 d5 d6 44 d7 d8 44 d9 da 44 db dc 44 dd de 0e 80 ff ff ff ff " +
			"ff ff ff ff 01 70 0e 80 fe ff ff ff ff ff ff ff 01 44 d3 d4 44 d5 d6 44 d7 d8 44 d9 da 44 db dc " +
			"44 dd de 0e d0 fc ff ff ff ff ff ff ff 01",
		23, 26,
	},
}

// TestWrongRows: at every instruction, the caller's registers are those with which the function was entered,
// whether the row there is right or contradicts itself.
func TestWrongRows(t *testing.T) {
	for _, c := range wrongRows {
		t.Run(c.name, func(t *testing.T) {
			program, err := hex.DecodeString(strings.ReplaceAll(c.program, " ", ""))
			must.Do(t, err)
			var code []byte
			for _, w := range strings.Fields(c.code) {
				b := must.Get(hex.DecodeString(w))(t)
				code = binary.LittleEndian.AppendUint32(code, binary.BigEndian.Uint32(b))
			}
			u := unwinder(oneFunction(t, code, program))
			got, err := armrun.Frames(code, codeLo, codeCall,
				func(m *armrun.Machine, _ uint64) (armrun.Registers, error) {
					return stepOver(u, m)
				})
			expect.True(t, err == nil && got.Prolog == c.prolog && got.Epilog == c.epilog,
				"%+v, %v", got, err)
		})
	}
}

// oneFunction is a module of a function at codeLo, with call frame information as Microsoft's compiler writes
// it.
func oneFunction(t *testing.T, code, program []byte) *module.Table {
	t.Helper()
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	cie.Data = -4
	frames.CIE(&cie)
	frames.FDE(&cie, codeLo-textBias, uint64(len(code)), program...)
	rows := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	text := make([]byte, 0x1000)
	copy(text, code)
	binary.LittleEndian.PutUint32(text[codeCall-4-codeLo:], 0x94000000)
	f := must.Get(elf.New(elfasm.Code(elfasm.ARM64, codeLo-textBias, text), "code"))(t)
	m := module.Module{Start: textBias, End: textBias + 0x10000, Bias: textBias, CFI: rows, ELF: f}
	return module.NewTable(1, []module.Module{m}, nil)
}

// stepOver steps from the frame that a machine executes to its caller.
func stepOver(u *Unwinder, m *armrun.Machine) (to armrun.Registers, err error) {
	r := context.Registers{Arch: context.ArchARM64}
	g := &r.ARM64
	g.X, g.Sp, g.PC, g.Known = m.X, m.SP, m.PC, 1<<31-1|0xff<<32
	copy(g.D[:], m.D[8:])
	s := unwind.Interrupted(&r)
	var f unwind.Frame
	if stop := u.Step(&s, memory.New(memory.Run{Addr: m.Base, Data: m.Stack}), &unwind.Bounds{Follow: true},
		&f); stop != unwind.StopNone {
		return to, errors.New(stop.String())
	}
	to.X, to.SP, to.PC = g.X, g.Sp, g.PC
	copy(to.D[8:], g.D[:])
	return to, nil
}
