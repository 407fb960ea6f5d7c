package cfi_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"strconv"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/judgetest"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// opinion counts how rows compare with Delve's pkg/dwarf/frame.
//
// Delve's known faults, each excluded where it shows and counted:
//   - DW_CFA_restore: Delve never fills its initial rules, so a restored
//     register is "undefined" to it whatever the CIE says;
//   - DW_CFA_val_offset is not multiplied by the data alignment factor;
//   - an expression in the CIE lies in a buffer that the FDE's program
//     overwrites;
//   - opcodes 0x2d (AArch64 RA state) and 0x2f are unknown to it and end the
//     row with an error.
type opinion struct {
	rows, agree                        int
	restored, valOffset, expr, unknown int
	wrong                              []string
}

// TestDelve compares every row of real files with Delve's reader.
func TestDelve(t *testing.T) {
	type image struct {
		name string
		data []byte
	}
	var images []image
	for _, name := range []string{hostLibc, "/lib/x86_64-linux-gnu/libgcc_s.so.1"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Logf("SKIPPED-CHECK: %s is not on this host", path.Base(name))
			continue
		}
		images = append(images, image{name, data})
	}
	a := judgetest.Archive(t, func(name string) bool {
		lib, _ := path.Match("files/*/lib*.so*", name)
		debug, _ := path.Match("files/*/basic_dbgframe", name)
		return lib || debug
	})
	for _, name := range a.Names("") {
		data, _ := a.File(name)
		images = append(images, image{name, data})
	}
	total := 0
	for _, im := range images {
		path, o := im.name, compareFile(t, im.name, im.data)
		total += o.rows
		t.Logf("%s: %d rows, %d agree; excluded: %d restored, %d val_offset, %d CIE expressions, %d unknown opcodes",
			path, o.rows, o.agree, o.restored, o.valOffset, o.expr, o.unknown)
		for _, w := range o.wrong[:min(5, len(o.wrong))] {
			t.Error(w)
		}
		expect.True(t, o.rows != 0 && o.agree >= o.rows/3 && len(o.wrong) == 0,
			"%s: %d of %d rows agree, %d do not", path, o.agree, o.rows, len(o.wrong))
	}
	expect.True(t, total >= 100000, "only %d rows were compared", total)
}

func compareFile(t *testing.T, path string, data []byte) (o opinion) {
	f, err := elf.New(data, path)
	must.Do(t, err)
	s := f.CFISections()
	tab, err := cfi.Load(module.CFISections(f, s))
	if err != nil || s.Err != nil {
		t.Logf("%s: %v %v", path, err, s.Err)
	}
	entries, err := frame.Parse(s.EHFrame, binary.LittleEndian, 0, 8, s.EHFrameAddr)
	must.Equal(t, err, nil, path)
	debug, err := frame.Parse(s.DebugFrame, binary.LittleEndian, 0, 8, 0)
	must.Equal(t, err, nil, path)
	entries = append(debug, entries...)
	byStart := map[uint64]*frame.FrameDescriptionEntry{}
	for _, e := range entries {
		byStart[e.Begin()] = e
	}
	var m cfi.Machine
	var row cfi.Row
	tab.Each(func(f cfi.FDE) bool {
		e := byStart[f.Lo]
		if e == nil || e.End() != f.Hi {
			o.wrong = append(o.wrong, fmt.Sprintf("FDE [%#x,%#x) is not Delve's", f.Lo, f.Hi))
			return true
		}
		if why := m.Rows(tab, &f, &row,
			func(r *cfi.Row) bool { o.compare(tab.Arch(), r, e); return true }); why != cfi.None {
			o.wrong = append(o.wrong, fmt.Sprintf("FDE %#x: %v", f.Lo, why))
		}
		return true
	})
	return o
}

func (o *opinion) compare(arch context.Arch, row *cfi.Row, e *frame.FrameDescriptionEntry) {
	o.rows++
	if bytes.IndexByte(e.Instructions, 0x2d) >= 0 && arch == context.ArchARM64 {
		o.unknown++
		return
	}
	d, err := e.EstablishFrame(row.Lo)
	if err != nil {
		o.wrong = append(o.wrong, fmt.Sprintf("%#x: Delve says %v", row.Lo, err))
		return
	}
	if !sameCFA(row.CFA, d.CFA) {
		if bytes.Contains(e.CIE.InitialInstructions, []byte{cfi.DW_CFA_def_cfa_expression}) {
			o.expr++
			return
		}
		o.wrong = append(o.wrong, fmt.Sprintf("%#x: CFA %+v, Delve %+v", row.Lo, row.CFA, d.CFA))
		return
	}
	excluded := false
	for c := range row.Regs {
		want, has := d.Regs[uint64(cfi.RegisterOf(arch, c))]
		switch {
		case sameRule(row.Regs[c], want, has):
		case has && want.Rule == frame.RuleUndefined &&
			(row.Regs[c].Kind == cfi.Unspecified || cfi.RegisterOf(arch, c) == row.FDE.RA): // restored
			excluded = true
			o.restored++
		case row.Regs[c].Kind == cfi.ValOffset:
			excluded = true
			o.valOffset++
		default:
			o.wrong = append(o.wrong,
				fmt.Sprintf("%#x r%d: %+v, Delve %+v", row.Lo, cfi.RegisterOf(arch, c), row.Regs[c], want))
			return
		}
	}
	if !excluded {
		o.agree++
	}
}

func sameCFA(r cfi.Rule, d frame.DWRule) bool {
	if r.Kind == cfi.Expression {
		return d.Rule == frame.RuleExpression && bytes.Equal(r.Expr, d.Expression)
	}
	return d.Rule == frame.RuleCFA && uint64(r.Reg) == d.Reg && r.Off == d.Offset
}

func sameRule(r cfi.Rule, d frame.DWRule, has bool) bool {
	if !has {
		return r.Kind == cfi.Unspecified
	}
	switch d.Rule {
	case frame.RuleUndefined:
		return r.Kind == cfi.Undefined
	case frame.RuleSameVal:
		return r.Kind == cfi.SameValue
	case frame.RuleOffset:
		return r.Kind == cfi.Offset && r.Off == d.Offset
	case frame.RuleValOffset:
		return r.Kind == cfi.ValOffset && r.Off == d.Offset
	case frame.RuleRegister:
		return r.Kind == cfi.Register && uint64(r.Reg) == d.Reg
	case frame.RuleExpression:
		return r.Kind == cfi.Expression && bytes.Equal(r.Expr, d.Expression)
	case frame.RuleValExpression:
		return r.Kind == cfi.ValExpression && bytes.Equal(r.Expr, d.Expression)
	}
	return false
}

// vectorOmits names the rules that the vectors leave out although the record
// has them: ld.so's FDE at 0x1c080 says DW_CFA_register x30 in x15 from 0x1c094
// on, which readelf shows and the vector's "r" does not list.
var vectorOmits = map[string]string{"ld0x1c0a3": "30"}

// TestVectorRows compares every row of the vectors, readelf's and libdw's common
// answer; and no row may have a rule that they do not know.
func TestVectorRows(t *testing.T) {
	for _, arch := range []string{"x86_64", "aarch64"} {
		t.Run(arch, func(t *testing.T) {
			judgetest.Rows(t, arch, func(binary, pc string, register int) {
				expect.Equal(t, vectorOmits[binary+pc], strconv.Itoa(register),
					"%s at %s: a rule for r%d is not in the vector", binary, pc, register)
			})
		})
	}
}
