package managed

import (
	"slices"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// changing names exported functions of ntdll that change a function table, of images or of dynamic code. They
// hold a lock that a look-up in the table also takes. So a look-up while a thread is suspended in one of them
// could wait without an end. They call further functions that are not exported. A stack of such a function
// contains one of these as a caller.
var changing = map[string]bool{
	"LdrLoadDll": true, "LdrUnloadDll": true,
	"RtlAddFunctionTable": true, "RtlDeleteFunctionTable": true, "RtlInstallFunctionTableCallback": true,
	"RtlAddGrowableFunctionTable": true, "RtlGrowFunctionTable": true, "RtlDeleteGrowableFunctionTable": true,
}

// LoaderFunctions returns the RVA ranges of the changing functions in ntdll, including parts of them that the
// compiler placed elsewhere, at most maxFound ranges. Functions that it cannot find are missing. It reads
// whole directories, so do not call it while a thread is suspended.
func LoaderFunctions(f *pe.File) (out []memory.Range) {
	exports, _ := f.Exports() // a partial result is useful
	var begins []uint32
	for i := range exports {
		if changing[exports[i].Name] && exports[i].RVA != 0 {
			begins = append(begins, exports[i].RVA)
		}
	}
	if len(begins) == 0 {
		return nil
	}
	for i := 0; i < f.AMD64().Len() && len(out) < maxFound; i++ {
		fn := f.AMD64().Entry(i)
		if slices.Contains(begins, primary(f, fn)) {
			out = append(out, memory.Range{Start: uint64(fn.Begin), End: uint64(fn.End)})
		}
	}
	return out
}

// primary returns the start of the function that an entry is part of.
func primary(f *pe.File, fn peamd64.RuntimeFunction) uint32 {
	for range maxChain {
		direct, why := f.AMD64().Resolve(fn)
		if why != peamd64.OK {
			return fn.Begin
		}
		info, fault := f.AMD64().Info(direct.Unwind)
		if !fault.OK() || !info.Chained() {
			return direct.Begin
		}
		fn = info.Parent
	}
	return fn.Begin
}
