package managed

import (
	"slices"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
)

// changing are functions of ntdll that change its table of the images' functions, or that of dynamic
// functions, under a lock that a look-up also takes. The functions that they call are not exported, but a
// stack leads through these.
var changing = map[string]bool{
	"LdrLoadDll": true, "LdrUnloadDll": true,
	"RtlAddFunctionTable": true, "RtlDeleteFunctionTable": true, "RtlInstallFunctionTableCallback": true,
	"RtlAddGrowableFunctionTable": true, "RtlGrowFunctionTable": true, "RtlDeleteGrowableFunctionTable": true,
}

// LoaderFunctions returns the ranges of those functions in ntdll, each with the parts that compilers place
// elsewhere. It reads whole directories, so do not call it in a suspended window.
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
