package clr

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestHRESULT(t *testing.T) {
	expect.Equal(t, CORPROF_E_STACKSNAPSHOT_UNSAFE.String(), "CORPROF_E_STACKSNAPSHOT_UNSAFE")
	expect.Equal(t, HRESULT(0x80131399).String(), "HRESULT 0x80131399")
	expect.True(t, E_FAIL.Failed() && !S_FALSE.Failed(), "Failed looks at the wrong bit")
}

// C fills arrays of SnapshotFrame: its layout is part of the interface.
func TestSnapshotFrameLayout(t *testing.T) {
	expect.Equal(t, unsafe.Sizeof(SnapshotFrame{}), 112, "size of SnapshotFrame, as C writes it")
}

func TestSnapshotFrameRegisters(t *testing.T) {
	f := SnapshotFrame{IP: 1, SP: 2, FP: 3, Saved: [10]uint64{4, 12, 13, 14, 15}}
	r := f.Registers(context.ArchAMD64).AMD64
	want := map[int]uint64{3: 4, 4: 2, 5: 3, 12: 12, 13: 13, 14: 14, 15: 15}
	for i, v := range r.GPR {
		expect.Equal(t, v, want[i], "register %d", i)
		expect.Equal(t, r.Known>>i&1 == 1, want[i] != 0, "register %d known", i)
	}
}

// rsi and rdi are known if the recorder marks them as nonvolatile; no other register can be marked so.
func TestSnapshotFrameWindows(t *testing.T) {
	f := SnapshotFrame{Saved: [10]uint64{5: 6, 6: 7}}
	const both = 1<<context.RSI | 1<<context.RDI
	r := f.Registers(context.ArchAMD64).AMD64
	expect.True(t, r.Known&both == 0, "known %#x without the mask", r.Known)
	before := f.Registers(context.ArchAMD64).AMD64.Known
	f.Saved[SavedMask] = ^uint64(0)
	r = f.Registers(context.ArchAMD64).AMD64
	expect.True(t, r.Known == before|both && r.GPR[context.RSI] == 6 && r.GPR[context.RDI] == 7,
		"known %#x, rsi %d, rdi %d", r.Known, r.GPR[context.RSI], r.GPR[context.RDI])
}

// The nonvolatile registers that are stored in a frame are read back unchanged.
func TestSnapshotFrameRoundTrip(t *testing.T) {
	regs := context.AMD64{RIP: 99, Known: context.AMD64All}
	for i := range regs.GPR {
		regs.GPR[i] = 100 + uint64(i)
	}
	for _, windows := range []bool{false, true} {
		f := SnapshotFrame{Function: 5, Saved: [10]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
		from := context.FromAMD64(regs)
		f.Store(&from, windows)
		got := f.Registers(context.ArchAMD64).AMD64
		for i, v := range got.GPR {
			if got.Known>>i&1 == 1 && v != regs.GPR[i] {
				t.Errorf("register %d = %d", i, v)
			}
		}
		expect.True(t, got.RIP == 99 && f.Function == 5 && got.Known>>context.RSI&1 == 1 == windows &&
			got.Known>>context.RAX&1 != 1, "windows %v: %+v", windows, got)
	}
}

func TestSnapshotFrameARM64(t *testing.T) {
	regs := context.ARM64{PC: 98, Sp: 96, Known: context.ARM64All}
	for i := range regs.X {
		regs.X[i] = 100 + uint64(i)
	}
	var f SnapshotFrame
	from := context.FromARM64(regs)
	f.Store(&from, false)
	got := f.Registers(context.ArchARM64).ARM64
	expect.True(t, f.IP == 98 && f.SP == 96 && f.FP == 129 && got.PC == 98 && got.Sp == 96, "%+v", f)
	for i, v := range got.X {
		kept := i >= 19 && i <= 29
		if known := got.Known>>i&1 == 1; known != kept || kept && v != regs.X[i] {
			t.Errorf("x%d = %d, known %v", i, v, known)
		}
	}
	expect.Equal(t, got.Known>>32, 0, "d8-d15 are not in a SnapshotFrame")
}

// A constant without a name would be shown to users as a number, and no other table would detect that.
func TestEveryHRESULTHasAName(t *testing.T) {
	f := must.Get(parser.ParseFile(token.NewFileSet(), "clr.go", nil, 0))(t)
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		v, ok := x.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		typ, ok := v.Type.(*ast.Ident)
		lit, isLit := v.Values[0].(*ast.BasicLit)
		if !ok || typ.Name != "HRESULT" || !isLit {
			return true
		}
		n++
		value, err := strconv.ParseUint(lit.Value, 0, 32)
		if name := HRESULT(value).String(); err != nil || strings.HasPrefix(name, "HRESULT ") {
			t.Errorf("%s has no name in hresultNames: %s", v.Names[0].Name, name)
		}
		return true
	})
	expect.True(t, n >= 15, "only %d constants were met", n)
}
