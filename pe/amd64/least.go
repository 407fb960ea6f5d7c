package amd64

// maxChain bounds how many parents of chained information are followed, as Windows does.
const maxChain = 32

// LeastFrame returns the least size in bytes of a function's frame at the RVA pc, with the return address.
// The function may allocate more at run time. The result is 0 in a prolog, which may call a stack probe,
// above a machine frame, and if the unwind data are bad. LeastFrame allocates nothing.
func (t *Table) LeastFrame(fn RuntimeFunction, pc uint32) (n uint64) {
	for range maxChain {
		info, fault := t.Info(fn.Unwind)
		if !fault.OK() || pc-fn.Begin < uint32(info.Prolog) {
			return 0
		}
		for b := info.Codes; len(b) > 0; {
			c, why := info.Code(b)
			if why != OK || c.Size() == 0 || c.Size() > len(b) || c.Op == UWOP_PUSH_MACHFRAME {
				return 0
			}
			n += c.StackDecrease()
			b = b[c.Size():]
		}
		if !info.Chained() {
			return n + 8
		}
		var why Reason
		if fn, why = t.Resolve(info.Parent); why != OK {
			return 0
		}
		pc = ^uint32(0) // behind the parent's prolog
	}
	return 0
}
