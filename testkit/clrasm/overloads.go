package clrasm

// Overloads is a module with what tells methods apart: in App.Box`1, whose parameter is
// TItem,
//
//	1 Put(TItem)      2 Put(StringBuilder, int?)   3 Own<TKey>(TKey)   4 Own<TKey,TValue>(TValue)
//	5 Alone(int)      6 Run()                      7 Run(string)       8 op_Explicit(int): string
//	9 op_Explicit(int): object
//
// and the state machines of 6 and 7, whose MoveNext are 10 and 11, and one of a method
// that no attribute names, 12.
func Overloads() []byte {
	m := New()
	m.Reference("StringBuilder", "System.Text", 6)
	m.Reference("Nullable`1", "System", 6)
	box := m.Type("Box`1", "App")
	m.Method("Put", []byte{0x20, 1, 1, 0x13, 0})
	m.Method("Put", []byte{0x20, 2, 1, 0x12, 1<<2 | 1, 0x15, 0x11, 2<<2 | 1, 1, 8})
	own1 := m.Method("Own", []byte{0x30, 1, 1, 1, 0x1e, 0})
	own2 := m.Method("Own", []byte{0x30, 2, 1, 1, 0x1e, 1})
	m.Method("Alone", []byte{0, 1, 1, 8})
	run := m.Method("Run", []byte{0, 0, 0x1c})
	runText := m.Method("Run", []byte{0, 1, 0x1c, 0x0e})
	m.Method("op_Explicit", []byte{0, 1, 0x0e, 8})
	m.Method("op_Explicit", []byte{0, 1, 0x1c, 8})
	var machines []int
	for _, name := range []string{"<Run>d__1", "<Run>d__2", "<Gone>d__3"} {
		machines = append(machines, m.Type(name, ""))
		m.Field("<>t__builder")
		m.Method("MoveNext", []byte{0x20, 0, 1})
	}
	m.Starts(run, "App.Box`1+<Run>d__1")
	m.Starts(runText, "App.Box`1+<Run>d__2, App")
	for _, t := range machines {
		m.Nested(t, box)
	}
	m.Parameter(0, "TItem", box, false)
	m.Parameter(0, "TKey", own1, true)
	m.Parameter(0, "TKey", own2, true)
	m.Parameter(1, "TValue", own2, true)
	return m.Bytes()
}
