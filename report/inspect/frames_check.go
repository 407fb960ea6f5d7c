package inspect

import (
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
)

// check checks every record, program, row, and expression.
func (r *frames) check(c *checker) {
	c.entries += r.table.Len()
	r.checkLoad(c)
	st := r.table.Stats()
	c.add(Overlapping, "FDEs that share bytes with one before", st.Overlapping, nil)
	c.add(Contradictory, ".eh_frame_hdr entries whose start is not their FDE's", st.HeaderWrong, nil)
	c.add(Remark, "FDEs that .eh_frame_hdr does not list", st.HeaderMiss, nil)
	c.add(Remark, "FDEs that only .eh_frame_hdr leads to", st.HeaderOnly, nil)
	c.add(Remark, "FDEs that cover nothing", st.Empty, nil)
	var m cfi.Machine
	var row cfi.Row
	r.table.Each(func(f cfi.FDE) bool {
		r.checkFDE(c, &m, &row, &f)
		return true
	})
}

// checkLoad classifies the damage in the records.
func (r *frames) checkLoad(c *checker) {
	var load *cfi.LoadError
	if !errors.As(r.err, &load) {
		return
	}
	for _, p := range load.Problems {
		c.add(classOf(p.Reason), p.Section+" "+p.Structure+": "+p.Msg, 1, p.Error)
	}
	c.add(Malformed, "further records", load.Count-len(load.Problems), nil)
}

func classOf(why cfi.Reason) Class {
	if why == cfi.Unsupported {
		return Unsupported
	}
	return Malformed
}

// checkFDE runs a whole program and looks at each row.
func (r *frames) checkFDE(c *checker, m *cfi.Machine, row *cfi.Row, f *cfi.FDE) {
	where := func() string { return fmt.Sprintf("[%#x,%#x)", f.Lo-r.base, f.Hi-r.base) }
	if !r.isCode(f.Lo - r.base) {
		c.add(Contradictory, "FDEs outside the executable segments", 1, where)
	}
	why := m.Rows(r.table, f, row, func(row *cfi.Row) bool {
		r.checkRow(c, row)
		return true
	})
	if why != cfi.None {
		c.add(classOf(why), "call frame program: "+why.String(), 1, where)
	}
}

func (r *frames) checkRow(c *checker, row *cfi.Row) {
	where := at(row.Lo - r.base)
	a := r.table.Arch()
	if row.CFA.Kind == cfi.Expression {
		checkExpr(c, row.CFA.Expr, where)
	} else if cfi.Column(a, uint64(row.CFA.Reg)) < 0 {
		c.add(Contradictory, "rows whose CFA counts from an unknown register", 1, where)
	}
	// On ARM64 no rule means that x30 still holds it; x86-64 has no such register.
	if a == context.ArchAMD64 && row.Rule(a, row.FDE.RA).Kind == cfi.Unspecified {
		c.add(Contradictory, "rows without a return address", 1, where)
	}
	for i := range row.Regs {
		if k := row.Regs[i].Kind; k == cfi.Expression || k == cfi.ValExpression {
			checkExpr(c, row.Regs[i].Expr, where)
		}
	}
}

// checkExpr looks for unknown and cut operations.
func checkExpr(c *checker, e []byte, where func() string) {
	if why := wellFormed(e); why != cfi.None {
		c.add(classOf(why), "expression: "+why.String(), 1, where)
	}
}
