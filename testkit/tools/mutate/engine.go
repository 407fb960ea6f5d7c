package main

import "slices"

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
	return slices.Concat(elfFaults(), cfiFaults(), peFaults(), unwindFaults(), codeFaults(),
		ringFaults(), readFaults(), leavesFaults(), followFaults(), commonFaults(),
		auditFaults(), unseenFaults(), listedFaults())
}

// engineFault is one of a file, which the tests of the folders named catch.
func engineFault(file, name, what, before, after string, by ...*Step) Fault {
	return Fault{Name: name, What: what, File: file, Old: before, New: after, By: by}
}

// faultsOf returns engineFault for one file, with the tests of its faults before those that a fault names.
func faultsOf(file string, usual ...*Step) func(name, what, before, after string, by ...*Step) Fault {
	return func(name, what, before, after string, by ...*Step) Fault {
		return engineFault(file, name, what, before, after, slices.Concat(usual, by)...)
	}
}

// faultsIn returns engineFault for the files of one folder, which the usual tests catch.
func faultsIn(folder string, usual ...*Step) func(file, name, what, before, after string) Fault {
	return func(file, name, what, before, after string) Fault {
		return engineFault(folder+file, name, what, before, after, usual...)
	}
}

var (
	readWorldTests = &Step{"./sample/probe", []string{"-run", "TestReadWorld"}}
	readMoreTests  = &Step{"./sample/probe", []string{"-run", "TestReadWorld/two_threads", "-read", "3"}}
	readTests      = &Step{"./sample/probe", []string{"-run", "TestReads"}}
)

// readFaults are those of reads by the probe: the C that answers, the Go that asks.
func readFaults() []Fault {
	answer := faultsOf("sample/probe/src/read.c")
	ask := faultsOf("sample/probe/ask_linux.go")
	read := faultsOf("sample/probe/read_linux.go")
	return []Fault{
		answer("read-anyone", "a thread answers that is not asked",
			"__atomic_load_n(&r->tid, __ATOMIC_RELAXED) != tid)", "(0 && tid))", readWorldTests),
		answer("read-stores", "a request is taken by a store",
			"\t\tif (!__atomic_compare_exchange_n(&r->state, &state, state - SW_READ_ASKED + SW_READ_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))\n\t\t\tcontinue;\n",
			"\t\t__atomic_store_n(&r->state, state - SW_READ_ASKED + SW_READ_TAKEN, __ATOMIC_RELEASE);\n",
			readWorldTests),
		ask("read-no-number", "requests have no numbers", "\tm.seq += readStates\n",
			"\tm.seq += 0\n", readMoreTests),
		ask("read-not-withdrawn", "a request that no thread takes stays",
			"if atomic.CompareAndSwapUint32(&r.state, asked, m.seq|readFree) {", "if true {", readTests),
		ask("read-killed", "a thread with a filter is read by the call that may kill it", "\tif a.Filtered {",
			"\tif a.Filtered && mappings {", readTests),
		read("read-taken", "a request is used while a thread may write its answer",
			"s == readFree || s == readDone {",
			"s == readFree || s == readDone || s == readTaken {", readWorldTests),
		read("read-twice", "who reads again is given the same copy", "\t\tgiven[i] = true\n",
			"\t\tgiven[i] = false\n", readTests),
		read("read-kept", "a copy is held though another was made since", "\tm.Renew()\n\tfor n < len(p)",
			"\tfor n < len(p)", readTests),
		read("read-ended", "a process that has ended is taken for a silent one",
			"\tif !m.c.Living() {\n\t\treturn Gone", "\tif false {\n\t\treturn Gone", readTests),
	}
}

// Faults of one folder, which its own tests catch.
var (
	inBuf   = faultsIn("internal/buf/", bufTests)
	inELF   = faultsIn("elf/", elfTests)
	inCFI   = faultsIn("cfi/", cfiTests)
	inPE    = faultsIn("pe/", peTests)
	inX64   = faultsIn("unwind/amd64/", x64Tests)
	inARM64 = faultsIn("unwind/arm64/", arm64Tests)
)
