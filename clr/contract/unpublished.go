package contract

import (
	_ "embed"

	"github.com/seedwalk/seedwalk/elf"
)

// net9 is the descriptor of .NET 9.0.5, as its libcoreclr.so publishes it.
//
//go:embed net9.json
var net9 []byte

// Single-file programs of .NET 9 export the debugger's table of globals and no
// descriptor. The table has as many entries in every 9.0: a table of another size is
// of another release.
const (
	dacEntries9 = 158
	dacSize9    = 8 * dacEntries9
)

// unpublished are the globals of net9 that are used, by their entry in the
// debugger's table (dacvars.h).
var unpublished = map[string]uint64{"ThreadStore": 16, "FinalizerThread": 17, "SyncTableEntries": 82}

// Holds reports whether an image holds a runtime whose structures can be read.
func Holds(image *elf.File) bool { return symbolsOf(image, 0).usable() }

// exports are the symbols of a runtime's module that matter here.
type exports struct{ desc, dac, dacSize uint64 }

func (e exports) usable() bool { return e.desc != 0 || e.dac != 0 && e.dacSize == dacSize9 }

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

// supposeDescriptor takes another runtime's descriptor of the same release. What
// rests on it is proven before it is used (Prove).
func (t *Tables) supposeDescriptor(dac uint64) error {
	d, err := ParseDescriptor(net9)
	if err != nil {
		return err
	}
	t.desc = d
	for name, entry := range unpublished {
		at, ok := t.v.word(dac + 8*entry)
		if !ok {
			return &Error{dacSymbol, dac, entry, "unreadable"}
		}
		d.Globals[name] = Global{Indirect: true, Value: uint64(len(t.pointers))}
		t.pointers = append(t.pointers, at)
	}
	return nil
}
