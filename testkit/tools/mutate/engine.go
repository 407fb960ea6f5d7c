package main

// The engine's own tests: of each reader, and of each walker by the vectors in
// the tree.
var (
	bufTests     = &Step{"./internal/buf", nil}
	elfTests     = &Step{"./elf", nil}
	cfiTests     = &Step{"./cfi", nil}
	peTests      = &Step{"./pe", nil}
	peX64Tests   = &Step{"./pe/amd64", nil}
	peARM64Tests = &Step{"./pe/arm64", nil}
	unwindTests  = &Step{"./unwind", nil}
	x64Tests     = &Step{"./unwind/amd64", nil}
	arm64Tests   = &Step{"./unwind/arm64", nil}
)

// engineFaults are those of the readers and walkers: sizes of opcodes, registers,
// alignments, bounds and signs.
func engineFaults() []Fault {
	var all []Fault
	for _, family := range [][]Fault{elfFaults(), cfiFaults(), peFaults(), unwindFaults(), codeFaults(), ringFaults(), readFaults(), leavesFaults(), followFaults(), commonFaults(), auditFaults()} {
		all = append(all, family...)
	}
	return all
}

// engineFault is one of a file, which the tests of the folders named catch.
func engineFault(file, name, what, before, after string, by ...*Step) Fault {
	return Fault{Name: name, What: what, File: file, Old: before, New: after, By: by}
}
