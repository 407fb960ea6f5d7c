package judge

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/report/inspect"
)

// wireRule writes a rule as the vectors do.
func wireRule(r *cfi.Rule) string {
	switch r.Kind {
	case cfi.Undefined:
		return `"u"`
	case cfi.SameValue:
		return `"s"`
	case cfi.Offset:
		return fmt.Sprintf(`"c%+d"`, r.Off)
	case cfi.ValOffset:
		return fmt.Sprintf(`"v%+d"`, r.Off)
	case cfi.Register:
		return fmt.Sprintf(`"r%d"`, r.Reg)
	case cfi.RegisterOffset:
		return fmt.Sprintf(`"r%d%+d"`, r.Reg, r.Off)
	case cfi.Expression:
		return `{"expr":` + wireOps(r.Expr) + `}`
	case cfi.ValExpression:
		return `{"valexpr":` + wireOps(r.Expr) + `}`
	}
	return "unspecified"
}

// wireOps writes an expression as the vectors do: opcode and two operands.
func wireOps(e []byte) string {
	var out []string
	for r := buf.At(e, 0); r.Len() > 0 && r.OK(); {
		op := r.U8()
		a, b := wireOperands(op, &r)
		out = append(out, fmt.Sprintf(`["%#x","%d","%d"]`, op, a, b))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func wireOperands(op uint8, r *buf.Reader) (a, b int64) {
	switch {
	case op >= 0x70 && op <= 0x8f, op == 0x11:
		return r.SLEB(), 0
	case op == 0x10, op == 0x23:
		return int64(r.ULEB()), 0
	case op == 0x92:
		a = int64(r.ULEB())
		return a, r.SLEB()
	case op == 0x08, op == 0x15, op == 0x94:
		return int64(r.U8()), 0
	case op == 0x09:
		return int64(int8(r.U8())), 0
	case op == 0x0a:
		return int64(r.U16()), 0
	case op == 0x0b, op == 0x28, op == 0x2f:
		return int64(int16(r.U16())), 0
	case op == 0x0c:
		return int64(r.U32()), 0
	case op == 0x0d:
		return int64(int32(r.U32())), 0
	case op == 0x03, op == 0x0e, op == 0x0f:
		return int64(r.U64()), 0
	}
	return 0, 0
}

// fdeRows writes the rows around pc of the FDE that covers it.
func fdeRows(t *cfi.Table, pc uint64) []string {
	f, why := t.Find(pc)
	if why != cfi.None {
		return []string{"no FDE: " + why.String()}
	}
	out := []string{fmt.Sprintf("FDE [%#x,%#x) at offset %#x", f.Lo, f.Hi, f.Offset)}
	var m cfi.Machine
	var row cfi.Row
	why = m.Rows(t, &f, &row, func(r *cfi.Row) bool {
		mark := "  "
		if pc >= r.Lo && pc < r.Hi {
			mark = "=>"
		}
		if r.Hi+64 >= pc && r.Lo <= pc+64 {
			cfa, saved := inspect.RowText(t.Arch(), r)
			out = append(out, fmt.Sprintf("%s [%#x,%#x) cfa %s; %s", mark, r.Lo, r.Hi, cfa, saved))
		}
		return len(out) < 24
	})
	if why != cfi.None {
		out = append(out, "the program ends: "+why.String())
	}
	return out
}

// codeText disassembles code at addr and marks the instruction at pc.
func codeText(arch context.Arch, addr, pc uint64, code []byte) []string {
	var out []string
	for _, in := range inspect.Disassemble(arch, addr, code) {
		mark := "  "
		if in.Addr == pc {
			mark = "=>"
		}
		out = append(out, fmt.Sprintf("%s %x: %-22x %s", mark, in.Addr, in.Bytes, in.Text))
	}
	return out
}

func zero(b []byte) bool {
	return len(bytes.Trim(b, "\x00")) == 0
}
