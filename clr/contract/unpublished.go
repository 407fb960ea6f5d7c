package contract

import (
	_ "embed"

	"github.com/seedwalk/seedwalk/elf"
)

// net9 is the descriptor that libcoreclr.so of .NET 9.0.5 publishes.
//
//go:embed net9.json
var net9 []byte

// Single-file programs of .NET 9 and all of .NET 8 export the debugger's table of globals and no descriptor.
// The table's size identifies the release.
const (
	dacSize9 = 8 * 158
	dacSize8 = 8 * 156
)

// unpublished9 and unpublished8 are the needed globals with their entries in the debugger's table
// (dacvars.h).
var (
	unpublished9 = map[string]uint64{"ThreadStore": 16, "FinalizerThread": 17, "GCThread": 18,
		"SyncTableEntries": 82}
	unpublished8 = map[string]uint64{"ThreadStore": 16, "FinalizerThread": 17, "GCThread": 18,
		"SyncTableEntries": 79}
)

// Holds reports whether an image contains a runtime whose structures can be read.
func Holds(image *elf.File) bool { return symbolsOf(image, 0).usable() }

// exports are the relevant symbols of a runtime's module.
type exports struct{ desc, dac, dacSize uint64 }

func (e exports) usable() bool {
	return e.desc != 0 || e.dac != 0 && (e.dacSize == dacSize9 || e.dacSize == dacSize8)
}

func symbolsOf(image *elf.File, bias uint64) (e exports) {
	for s := range image.Symbols(true) {
		switch {
		case s.Section == 0 || s.Value == 0:
		case s.Name == descriptorSymbol:
			e.desc = s.Value + bias
		case s.Name == dacSymbol:
			e.dac, e.dacSize = s.Value+bias, s.Size
		}
	}
	return e
}

// supposeDescriptor uses the descriptor of .NET 9.0.5, changed for .NET 8. Verify checks everything that
// depends on it before it is used.
func (t *Tables) supposeDescriptor(e exports) error {
	d, err := ParseDescriptor(net9)
	if err != nil {
		return err
	}
	t.desc = d
	unpublished := unpublished9
	if e.dacSize == dacSize8 {
		d.toNet8()
		unpublished = unpublished8
	}
	for name, entry := range unpublished {
		at, ok := t.v.word(e.dac + 8*entry)
		if !ok {
			return &Error{dacSymbol, e.dac, entry, "unreadable"}
		}
		d.Globals[name] = Global{Indirect: true, Value: uint64(len(t.pointers))}
		t.pointers = append(t.pointers, at)
	}
	return nil
}

// toNet8 changes the descriptor of .NET 9.0.5 into that of .NET 8 (seen in 8.0.6). A MethodDesc has 8 bytes
// instead of 16, so the data after it are 8 bytes lower. A Module lacks its image's address, which is reached
// through its PEAssembly, PEImage, and loaded layout. A Thread begins with another field, and contains its
// allocation context and exception state. The row of a MethodTable's type has two bytes of its own, and the
// counts of an EEClass are behind its other fields.
func (d *Descriptor) toNet8() {
	for _, f := range []struct{ typ, field string }{
		{"DynamicMethodDesc", "MethodName"}, {"InstantiatedMethodDesc", "PerInstInfo"},
		{"InstantiatedMethodDesc", "Flags2"},
		{"InstantiatedMethodDesc", "NumGenericArgs"}, {"StoredSigMethodDesc", "Sig"},
		{"StoredSigMethodDesc", "cSig"}, {"StoredSigMethodDesc", "ExtendedFlags"},
	} {
		if off, ok := d.Offset(f.typ, f.field); ok && off >= 8 {
			d.Types[f.typ][f.field] = off - 8
		}
	}
	d.Types["Thread"] = map[string]uint32{"State": 8, "PreemptiveGCDisabled": 12, "Frame": 16, "Id": 32,
		"AllocContext": 88, "LinkNext": 232, "OSId": 424}
	d.Types["MethodTable"]["Token"], d.Types["EEClass"]["NumInstanceFields"] = 10, 56
	const assembly, image, loaded, base = 272, 8, 120, 8
	d.Types["Module"] = map[string]uint32{"Base": assembly}
	d.toBase = []uint64{image, loaded, base}
}
