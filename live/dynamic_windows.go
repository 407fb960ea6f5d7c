package live

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// dynamic is unwind data of code that was made at run time, copied from where
// its maker registered it. It is asked for while nothing is suspended: the
// system's tables have a lock that a suspended thread may own.
//
// Source: Win32 RtlLookupFunctionEntry; "x64 exception handling" for what is
// copied.
type dynamic struct {
	base map[uint64]uint64   // by ip: image base, 0 = no entry
	at   map[uint64]*pe.File // by ip
}

var lookupFunctionEntry = windows.NewLazySystemDLL("ntdll.dll").NewProc("RtlLookupFunctionEntry")

// forget drops what was copied: code may have gone and other code come.
func (d *dynamic) forget() { d.at, d.base = map[uint64]*pe.File{}, map[uint64]uint64{} }

// Sizes of what is copied: an UNWIND_INFO with all its codes, a chained entry
// and a handler; a function's code, as far as an epilog may be looked for.
const (
	maxUnwindInfo = 4 + 2*256 + 12
	maxCode       = 1 << 16
	maxCopies     = 1 << 14
)

// find returns the image of one function that covers pc, nil if its maker has
// registered none.
func (d *dynamic) find(pc uint64) (f *pe.File, base uint64) {
	if f, ok := d.at[pc]; ok {
		return f, d.base[pc]
	}
	if d.at == nil || len(d.at) >= maxCopies {
		d.forget()
	}
	f, base = copyFunction(pc)
	d.at[pc], d.base[pc] = f, base
	return f, base
}

// copyFunction asks the system for the entry of pc and copies what it leads to.
func copyFunction(pc uint64) (f *pe.File, base uint64) {
	var image uintptr
	at, _, _ := lookupFunctionEntry.Call(uintptr(pc), uintptr(unsafe.Pointer(&image)), 0)
	var entry [peamd64.EntrySize]byte
	base = uint64(image)
	if at == 0 || !readSelf(uint64(at), entry[:]) {
		return nil, 0
	}
	begin, end, info := le32(entry[:]), le32(entry[4:]), le32(entry[8:])
	if rva := pc - base; rva < uint64(begin) || rva >= uint64(end) || info&3 != 0 {
		return nil, 0
	}
	blocks := []pe.Block{
		{RVA: begin, Data: readSome(base+uint64(begin), min(uint64(end-begin), maxCode))},
		{RVA: info, Data: readSome(base+uint64(info), maxUnwindInfo)},
	}
	blocks = append(blocks, chained(base, blocks[1].Data)...)
	const machineAMD64 = 0x8664
	return pe.FromBlocks(machineAMD64, entry[:], blocks), base
}

// chained copies the UNWIND_INFOs that one is chained to.
func chained(base uint64, info []byte) (out []pe.Block) {
	const flagChain = 4
	for range 8 {
		if len(info) < 4 || info[0]>>3&flagChain == 0 {
			break
		}
		at := 4 + 2*((int(info[2])+1)&^1) + 8
		if at+4 > len(info) {
			break
		}
		rva := binary.LittleEndian.Uint32(info[at:])
		info = readSome(base+uint64(rva), maxUnwindInfo)
		out = append(out, pe.Block{RVA: rva, Data: info})
	}
	return out
}

// readSome reads up to n bytes, less where the memory ends.
func readSome(addr, n uint64) []byte {
	b := make([]byte, n)
	if readSelf(addr, b) {
		return b
	}
	const page = 4096
	if first := page - addr%page; first < n && readSelf(addr, b[:first]) {
		return b[:first]
	}
	return nil
}

// precompiled returns the managed image that holds addr.
func (l *Images) precompiled(addr uint64) *module.Module {
	for _, m := range l.managed {
		if addr >= m.Start && addr < m.End {
			return m
		}
	}
	return nil
}

// StepManaged implements merge.Managed: it steps over managed code, IL stubs
// among it, by the unwind data that the CLR has registered or its image holds.
func (l *Images) StepManaged(regs *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (unwind.Trust, unwind.Stop) {
	pc := unwind.LookupIP(regs.RIP, exact)
	file, base := (*pe.File)(nil), uint64(0)
	if m := l.precompiled(pc); m != nil {
		file, base = m.PE, m.Bias
	} else {
		file, base = l.dynamic.find(pc)
	}
	rva := regs.RIP - base
	if file == nil || rva != uint64(uint32(rva)) {
		return stub(regs, exact, mem)
	}
	to := *regs
	res, stop := amd64.StepPE(file.AMD64(), uint32(rva), exact, &to, mem)
	if res.Part == amd64.PELeaf { // a precompiled image's thunks push what they need
		return unwind.TrustNone, unwind.NoInfo
	}
	if stop != unwind.StopNone {
		return unwind.TrustNone, stop
	}
	*regs = to
	if res.Part == amd64.PEEpilog {
		return unwind.TrustEpilog, unwind.StopNone
	}
	return unwind.TrustUnwindInfo, unwind.StopNone
}

// stub steps out of code of the CLR's without unwind data: precode, jump stubs,
// thunks for calls from native code, which all jump on and have no frame. Only
// where one was interrupted, and only if what is on top of the stack follows a
// call: other generators' code might have pushed something.
func stub(regs *context.AMD64, exact bool, mem *memory.Window) (unwind.Trust, unwind.Stop) {
	ra, ok := mem.Word(regs.SP())
	if !exact || !ok || !followsCall(ra) {
		return unwind.TrustNone, unwind.NoInfo
	}
	const preserved = 1<<context.RBX | 1<<context.RSP | 1<<context.RBP | 1<<context.RSI | 1<<context.RDI | 0xf<<context.R12 | 0x3ff<<16
	regs.RIP = ra
	regs.GPR[context.RSP] += 8
	regs.Known &= preserved
	return unwind.TrustLeaf, unwind.StopNone
}

// followsCall reports whether the bytes before ra are a near call: E8 rel32, or
// FF /2 with any operand, which takes two to seven bytes.
func followsCall(ra uint64) bool {
	var b [7]byte
	if ra < 1<<16 || ra>>47 != 0 || !readSelf(ra-7, b[:]) {
		return false
	}
	if b[2] == 0xe8 {
		return true
	}
	for _, n := range []int{2, 3, 4, 6, 7} {
		if at := 7 - n; b[at] == 0xff && b[at+1]>>3&7 == 2 && callSize(b[at+1:]) == n {
			return true
		}
	}
	return false
}

// callSize is the length of FF /2 with this ModRM byte and what follows it.
func callSize(b []byte) int {
	mod, rm, n := b[0]>>6, b[0]&7, 2
	if mod == 3 {
		return n
	}
	if rm == 4 { // SIB
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5, mod == 0 && rm == 4 && len(b) > 1 && b[1]&7 == 5:
		n += 4
	}
	return n
}

// maxThread is how much of a Thread object is searched for hijack fields, bytes.
const maxThread = 1024

// Hijacked implements merge.Managed: a Thread keeps the return address that the
// CLR has replaced, and behind it the slot's address. Where they stand differs
// from release to release, so that they are found by their values: the address
// must follow a call, in code whose maker has registered it.
func (l *Images) Hijacked(thread, slot uint64) (ra uint64, ok bool) {
	var object [maxThread]byte
	if slot == 0 || !readSelf(thread, object[:]) {
		return 0, false
	}
	for i := 8; i < maxThread; i += 8 {
		if binary.LittleEndian.Uint64(object[i:]) != slot {
			continue
		}
		ra = binary.LittleEndian.Uint64(object[i-8:])
		if !followsCall(ra) {
			continue
		}
		if f, _ := l.dynamic.find(ra - 1); f != nil || l.precompiled(ra-1) != nil {
			return ra, true
		}
	}
	return 0, false
}
