package cfi

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
)

// TestNoAllocations: look-up, row and expression run while a thread is
// suspended.
func TestNoAllocations(t *testing.T) {
	tab := table(t, context.ArchARM64, ehFrame(DW_CFA_remember_state, DW_CFA_offset|3, 2, DW_CFA_expression, 6, 2, DW_OP_breg0+7, 8, DW_CFA_restore_state, DW_CFA_advance_loc|2, DW_CFA_offset|3, 2))
	var m Machine
	var row Row
	env := exprEnv()
	plt := []byte{DW_OP_breg0 + 7, 8, DW_OP_breg0 + 16, 0, DW_OP_lit0 + 15, DW_OP_and, DW_OP_lit0 + 11, DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus}
	for name, fn := range map[string]func(){
		"Find":     func() { tab.Find(fnLo + 1) },
		"Row":      func() { m.Row(tab, fnLo+4, &row) },
		"Row miss": func() { m.Row(tab, 1, &row) },
		"Eval":     func() { Eval(plt, env) },
		"Eval bad": func() { Eval(plt[:1], env) },
	} {
		if n := testing.AllocsPerRun(200, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
