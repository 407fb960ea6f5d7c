package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

// NoRuntime is the Structure of the Error for an image without a runtime.
const NoRuntime = "dynamic symbols"

// The symbols that a runtime's module exports.
const (
	descriptorSymbol = "DotNetRuntimeContractDescriptor"
	dacSymbol        = "g_dacTable"
)

const (
	descriptorMagic = "DNCCDAC\x00" // as the little-endian word is stored
	descriptorSize  = 40
	maxPointers     = 4096
)

// Tables looks up methods in one runtime. It has a cache and is not safe for concurrent use.
type Tables struct {
	v      view
	l      layout
	top    uint64 // the range map's top level
	cache  map[uint64]*located
	images map[uint64]directory
	proof
	mayUnload sections // of collectible code that lookups found

	desc                     *Descriptor
	pointers                 []uint64
	descFlags, extendedFlags uint64 // offsets in a MethodDesc
	arch                     context.Arch
	windows                  bool // functions preserve the registers that they do on Windows

	incomplete bool   // see SetIncomplete
	globals    uint64 // the debugger's table of globals (g_dacTable), 0 = not exported
}

// DebuggerGlobals returns the address of the table of addresses that the runtime exports for debuggers
// (g_dacTable), or 0.
func (t *Tables) DebuggerGlobals() uint64 { return t.globals }

// SetIncomplete marks the memory as that of a core, in which pages of the runtime may be missing. An
// unreadable structure then does not contradict an assumed layout.
func (t *Tables) SetIncomplete() { t.incomplete = true }

// Open finds the code tables of the runtime in image, which is loaded at bias above its own addresses, and
// reads its memory through r. The error is an *Error; for an image without a runtime its Structure is
// NoRuntime.
func Open(r memory.Reader, image *elf.File, bias uint64) (*Tables, error) {
	e := symbolsOf(image, bias)
	if !e.usable() {
		return nil, &Error{NoRuntime, 0, e.dacSize, "no " + descriptorSymbol}
	}
	switch arch := image.Arch(); {
	case arch == context.ArchAMD64, arch == context.ArchARM64 && e.desc != 0:
		return open(r, arch, e)
	case arch == context.ArchARM64:
		return nil, &Error{"image", 0, uint64(arch),
			"on ARM64 only runtimes that publish their structures are read"}
	default:
		return nil, &Error{"image", 0, uint64(arch), "neither x86-64 nor ARM64"}
	}
}

// OpenPE is Open for a runtime of Windows whose image is mapped at base. It supports only a runtime that
// publishes its code tables: no other layout has been verified.
func OpenPE(r memory.Reader, image *pe.File, base uint64) (*Tables, error) {
	desc := DescriptorPE(image, base)
	if desc == 0 {
		return nil, &Error{NoRuntime, 0, 0, "no " + descriptorSymbol}
	}
	if arch, _ := image.Arch(); arch != context.ArchAMD64 {
		return nil, &Error{"image", 0, uint64(arch), "not x86-64"}
	}
	t, err := open(r, context.ArchAMD64, exports{desc: desc})
	if err == nil {
		t.windows = true
	}
	return t, err
}

// DescriptorPE returns the address of the descriptor that an image mapped at base exports, 0 if there is
// none.
func DescriptorPE(image *pe.File, base uint64) uint64 {
	exports, _ := image.Exports() // a partial result is useful
	for i := range exports {
		if exports[i].Name == descriptorSymbol && exports[i].RVA != 0 {
			return base + uint64(exports[i].RVA)
		}
	}
	return 0
}

// PublishesPE reports whether the runtime in a Windows file publishes its code tables. The file is enough: it
// contains the descriptor.
func PublishesPE(image *pe.File) bool {
	h, ok := image.BytesAt(uint32(DescriptorPE(image, 0)), descriptorSize)
	if !ok || string(h[:8]) != descriptorMagic {
		return false
	}
	size, text := binary.LittleEndian.Uint32(h[12:]), binary.LittleEndian.Uint64(h[16:])-image.ImageBase()
	if size > maxDescriptor || text != uint64(uint32(text)) {
		return false
	}
	json, ok := image.BytesAt(uint32(text), int(size))
	if !ok {
		return false
	}
	d, err := ParseDescriptor(json)
	return err == nil && (d.Contracts["ExecutionManager"] == 1 || d.Contracts["ExecutionManager"] == 2)
}

func open(r memory.Reader, arch context.Arch, e exports) (*Tables, error) {
	t := &Tables{v: view{r: r}, arch: arch, cache: map[uint64]*located{},
		images: map[uint64]directory{}, globals: e.dac}
	var err error
	if e.desc != 0 {
		t.desc, t.pointers, err = t.descriptor(e.desc)
	} else {
		err = t.supposeDescriptor(e)
	}
	if err != nil {
		return nil, err
	}
	switch version, ok := t.desc.Contracts["ExecutionManager"]; {
	case !ok && arch != context.ArchAMD64:
		err = &Error{"contract ExecutionManager", e.desc, uint64(arch),
			"not published; no layout is supposed but that of x86-64"}
	case !ok:
		err = t.supposeLayout(e.dac)
	case version == 1 || version == 2:
		err = t.useLayout(t.desc, t.pointers, version == 1)
	default:
		err = &Error{"contract ExecutionManager", e.desc, uint64(version), "unknown version"}
	}
	if err == nil {
		err = t.checkTop()
	}
	if err != nil {
		return nil, err
	}
	t.descFlags = uint64(t.desc.Types["MethodDesc"]["Flags"])
	t.extendedFlags = uint64(t.desc.Types["StoredSigMethodDesc"]["ExtendedFlags"])
	return t, nil
}

// descriptor reads the descriptor at an address: its header, its JSON text, and its pointers.
func (t *Tables) descriptor(at uint64) (*Descriptor, []uint64, error) {
	h, ok := t.v.bytes(at, descriptorSize)
	if !ok {
		return nil, nil, &Error{"contract descriptor header", at, 0, "unreadable"}
	}
	if string(h[:8]) != descriptorMagic {
		return nil, nil, &Error{"contract descriptor header", at,
			binary.LittleEndian.Uint64(h), "magic differs"}
	}
	le := binary.LittleEndian
	flags, size, text := le.Uint32(h[8:]), le.Uint32(h[12:]), le.Uint64(h[16:])
	count, data := le.Uint32(h[24:]), le.Uint64(h[32:])
	switch {
	case flags&3 != 1:
		return nil, nil, &Error{"contract descriptor flags", at, uint64(flags), "not a 64-bit runtime"}
	case size > maxDescriptor:
		return nil, nil, &Error{"contract descriptor size", at, uint64(size), "too large"}
	case count > maxPointers:
		return nil, nil, &Error{"contract descriptor pointer count", at, uint64(count), "too large"}
	}
	json, ok := t.large(text, int(size))
	if !ok {
		return nil, nil, &Error{"contract descriptor text", text, uint64(size), "unreadable"}
	}
	d, err := ParseDescriptor(json)
	if err != nil {
		return nil, nil, err
	}
	raw, ok := t.large(data, 8*int(count))
	if !ok {
		return nil, nil, &Error{"contract descriptor pointers", data, uint64(count), "unreadable"}
	}
	pointers := make([]uint64, count)
	for i := range pointers {
		pointers[i] = le.Uint64(raw[8*i:])
	}
	return d, pointers, nil
}

// large reads n bytes into a new buffer, which grows only as far as bytes are readable. The caller bounds n.
func (t *Tables) large(addr uint64, n int) ([]byte, bool) {
	var out []byte
	for n > 0 {
		b, ok := t.v.bytes(addr, min(n, len(t.v.buf)))
		if !ok {
			return nil, false
		}
		out = append(out, b...)
		addr, n = addr+uint64(len(b)), n-len(b)
	}
	return out, true
}

// useLayout takes the layout and the range map from the descriptor (.NET 10). linear is true for version 1 of
// the contract.
func (t *Tables) useLayout(d *Descriptor, pointers []uint64, linear bool) error {
	l, err := d.layout(functionSize(t.arch))
	if err != nil {
		return err
	}
	g, ok := d.Globals["ExecutionManagerCodeRangeMapAddress"]
	if !ok || !g.Indirect || g.Value >= uint64(len(pointers)) {
		return &Error{"global ExecutionManagerCodeRangeMapAddress", 0, g.Value, "missing or no valid index"}
	}
	t.l, t.l.linear = l, linear
	t.top, t.proven = pointers[g.Value]+l.mapTop, allParts
	return nil
}

// supposeLayout assumes the layout of .NET 10, and takes the range map from the debugger's table (.NET 9).
func (t *Tables) supposeLayout(dac uint64) error {
	if dac == 0 {
		return &Error{dacSymbol, 0, 0, "not exported, and the descriptor has no code tables"}
	}
	top, ok := t.v.word(dac)
	if !ok {
		return &Error{dacSymbol, dac, 0, "unreadable"}
	}
	t.l, t.l.linear = layout10, true
	t.top, t.dac = top, dac
	return nil
}

// checkTop checks the range map's top level: 256 words, each 0 or a pointer to readable memory (whose lowest
// bit is a tag), nearly all 0.
func (t *Tables) checkTop() error {
	used := 0
	for i := range uint64(levelSize) {
		w, ok := t.v.word(t.top + 8*i)
		if !ok {
			return &Error{"range map", t.top, i, "unreadable"}
		}
		if w == 0 {
			continue
		}
		if _, ok := t.v.word(w &^ 1); !ok || w&6 != 0 {
			return &Error{"range map", t.top + 8*i, w, "not a pointer"}
		}
		used++
	}
	if used > 4 { // one covers 128 TiB / 4: user space needs at most four
		return &Error{"range map", t.top, uint64(used), "too many top-level entries"}
	}
	return nil
}
