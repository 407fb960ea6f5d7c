package amd64

import (
	"encoding/binary"
	"errors"
	"math/rand"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/pe/rva"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// TestCodes decodes one code of each operation.
func TestCodes(t *testing.T) {
	plain := Info{Version: 1}
	frame := Info{Version: 1, FrameReg: 5, FrameOffset: 240}
	v2 := Info{Version: 2}
	unix := Info{Version: 1, FrameReg: 5, FrameOffset: 240, Unix: true}
	for _, c := range []struct {
		name string
		info Info
		code []byte
		want Code
		why  Reason
	}{
		{"push", plain, []byte{9, 0xf0}, Code{UWOP_PUSH_NONVOL, 9, 15, 1, 8}, OK},
		{"alloc large, scaled", plain, []byte{9, 0x01, 0x17, 0}, Code{UWOP_ALLOC_LARGE, 9, 0, 2, 184}, OK},
		{"alloc large, 16 bits full", plain, []byte{9, 0x01, 0xff, 0xff},
			Code{UWOP_ALLOC_LARGE, 9, 0, 2, 524280}, OK},
		{"alloc large, 32 bits", plain, []byte{9, 0x11, 1, 2, 3, 4},
			Code{UWOP_ALLOC_LARGE, 9, 1, 3, 0x04030201}, OK},
		{"alloc small, least", plain, []byte{4, 0x02}, Code{UWOP_ALLOC_SMALL, 4, 0, 1, 8}, OK},
		{"alloc small, most", plain, []byte{4, 0xf2}, Code{UWOP_ALLOC_SMALL, 4, 15, 1, 128}, OK},
		{"set frame", frame, []byte{4, 0x03}, Code{UWOP_SET_FPREG, 4, 0, 1, 240}, OK},
		{"save", plain, []byte{4, 0x34, 0x1e, 0}, Code{UWOP_SAVE_NONVOL, 4, 3, 2, 240}, OK},
		{"save far", plain, []byte{4, 0x35, 0x1e, 0, 1, 0}, Code{UWOP_SAVE_NONVOL_FAR, 4, 3, 3, 0x1001e}, OK},
		{"epilog", v2, []byte{0x34, 0x26}, Code{UWOP_EPILOG, 0x34, 2, 1, 0x234}, OK},
		{"save xmm", plain, []byte{4, 0x68, 0x0a, 0}, Code{UWOP_SAVE_XMM128, 4, 6, 2, 160}, OK},
		{"save xmm far", plain, []byte{4, 0xf9, 0x10, 0, 1, 0},
			Code{UWOP_SAVE_XMM128_FAR, 4, 15, 3, 0x10010}, OK},
		{"machine frame", plain, []byte{0, 0x0a}, Code{UWOP_PUSH_MACHFRAME, 0, 0, 1, 0}, OK},
		{"machine frame with error code", plain, []byte{0, 0x1a}, Code{UWOP_PUSH_MACHFRAME, 0, 1, 1, 0}, OK},
		{"set frame large", unix, []byte{4, 0x0b, 0x20, 0, 1, 0},
			Code{UWOP_SET_FPREG_LARGE, 4, 0, 3, 0x100200}, OK},

		{"no bytes", plain, nil, Code{}, BadOperand},
		{"one byte", plain, []byte{1}, Code{}, BadOperand},
		{"alloc large without operand", plain, []byte{9, 0x01},
			Code{Op: UWOP_ALLOC_LARGE, Offset: 9, Slots: 2}, BadOperand},
		{"alloc large with half an operand", plain, []byte{9, 0x11, 1, 2},
			Code{Op: UWOP_ALLOC_LARGE, Offset: 9, Info: 1, Slots: 3}, BadOperand},
		{"alloc large, info 2", plain, []byte{9, 0x21, 1, 2, 3, 4},
			Code{Op: UWOP_ALLOC_LARGE, Offset: 9, Info: 2, Slots: 1}, BadOperation},
		{"set frame without frame register", plain, []byte{4, 0x03},
			Code{Op: UWOP_SET_FPREG, Offset: 4, Slots: 1}, BadFrame},
		{"save without operand", plain, []byte{4, 0x34},
			Code{Op: UWOP_SAVE_NONVOL, Offset: 4, Info: 3, Slots: 2}, BadOperand},
		{"save far without operand", plain, []byte{4, 0x35, 0, 0},
			Code{Op: UWOP_SAVE_NONVOL_FAR, Offset: 4, Info: 3, Slots: 3}, BadOperand},
		{"epilog in version 1", plain, []byte{4, 6}, Code{Op: UWOP_EPILOG, Offset: 4, Slots: 1}, BadOpcode},
		{"spare code", v2, []byte{4, 7, 0, 0, 0, 0},
			Code{Op: UWOP_SPARE_CODE, Offset: 4, Slots: 1}, BadOpcode},
		{"save xmm without operand", plain, []byte{4, 8},
			Code{Op: UWOP_SAVE_XMM128, Offset: 4, Slots: 2}, BadOperand},
		{"machine frame, info 2", plain, []byte{0, 0x2a},
			Code{Op: UWOP_PUSH_MACHFRAME, Info: 2, Slots: 1}, BadOperation},
		{"set frame large on Windows", frame, []byte{4, 0x0b, 0, 0, 0, 0},
			Code{Op: UWOP_SET_FPREG_LARGE, Offset: 4, Slots: 1}, BadOpcode},
		{"set frame large with offset 14", Info{Version: 1, FrameReg: 5, FrameOffset: 224, Unix: true},
			[]byte{4, 0x0b, 0, 0, 0, 0}, Code{Op: UWOP_SET_FPREG_LARGE, Offset: 4, Slots: 1}, BadFrame},
		{"set frame larger than 4 GiB", unix, []byte{4, 0x0b, 0, 0, 0, 0x10},
			Code{Op: UWOP_SET_FPREG_LARGE, Offset: 4, Slots: 3, Operand: 0x10000000}, BadFrame},
		{"operation 12", plain, []byte{4, 12}, Code{Op: 12, Offset: 4, Slots: 1}, BadOpcode},
		{"operation 15", v2, []byte{4, 15}, Code{Op: 15, Offset: 4, Slots: 1}, BadOpcode},
	} {
		got, why := c.info.Code(c.code)
		expect.True(t, got == c.want && why == c.why,
			"%s: %+v %v, want %+v %v", c.name, got, why, c.want, c.why)
	}
}

func TestDecode(t *testing.T) {
	full := []byte{1 | UNW_FLAG_EHANDLER<<3, 8, 3, 0x35, 8, 3, 4, 0x30, 2, 0x50, 0xaa,
		0xaa, 0x78, 0x56, 0x34, 0x12, 0xbb}
	i, fault := Decode(full, false)
	if !fault.OK() || i.Prolog != 8 || i.Count != 3 || i.FrameReg != 5 || i.FrameOffset != 48 ||
		len(i.Codes) != 6 || i.Handler != 0x12345678 {
		t.Errorf("handler: %+v %v", i, fault)
	}
	chained := append([]byte{1 | UNW_FLAG_CHAININFO<<3, 0, 0, 0}, pdata(RuntimeFunction{1, 2, 3})...)
	i, fault = Decode(chained, false)
	expect.True(t, fault.OK() && i.Chained() && i.Parent == (RuntimeFunction{1, 2, 3}) && i.Handler == 0,
		"chained: %+v %v", i, fault)
	for name, b := range map[string][]byte{"handler": full[:16], "chained": chained} {
		for n := range b {
			_, fault := Decode(b[:n:n], false)
			expect.True(t, fault.Reason == Short, "%s cut to %d bytes: %v", name, n, fault.Reason)
		}
	}
	for v, want := range map[byte]Reason{0: BadVersion, 1: OK, 2: OK, 3: Version3,
		4: BadVersion, 7: BadVersion} {
		_, fault := Decode([]byte{v, 0, 0, 0}, false)
		expect.True(t, fault.Reason == want, "version %d: %v", v, fault.Reason)
	}
	expect.True(t, Version3.Unsupported() && !BadVersion.Unsupported(),
		"version 3 is unsupported, version 4 is wrong")
}

func TestFind(t *testing.T) {
	f := image(pdata(
		RuntimeFunction{0x100, 0x200, 0x10},
		RuntimeFunction{0x200, 0x280, 0x5001}, // indirect, to an indirect one
		RuntimeFunction{0x300, 0x380, 0x6001}, // to itself
		RuntimeFunction{0x400, 0x480, 0x7001}, // to bytes that are not there
		RuntimeFunction{0xfffffff0, 0xffffffff, 0x20},
	), []rva.Block{
		{RVA: 0x5000, Data: pdata(RuntimeFunction{1, 2, 0x5101})},
		{RVA: 0x5100, Data: pdata(RuntimeFunction{0x100, 0x200, 0x10})},
		{RVA: 0x6000, Data: pdata(RuntimeFunction{3, 4, 0x6001})},
		{RVA: 0x7000, Data: make([]byte, 11)},
	})
	for _, c := range []struct {
		name string
		rva  uint32
		fn   uint32 // begin
		why  Reason
	}{
		{"before all", 0xff, 0, NoEntry},
		{"first byte", 0x100, 0x100, OK},
		{"last byte", 0x1ff, 0x100, OK},
		{"indirect", 0x210, 0x100, OK},
		{"gap", 0x280, 0, NoEntry},
		{"indirect to itself", 0x300, 0, IndirectLoop},
		{"indirect to the outside", 0x400, 0, Outside},
		{"top", 0xfffffffe, 0xfffffff0, OK},
		{"past the top", 0xffffffff, 0, NoEntry},
	} {
		fn, why := f.Find(c.rva)
		if why != c.why || why == OK && fn.Begin != c.fn {
			t.Errorf("%s: %#x %v", c.name, fn.Begin, why)
		}
	}
	expect.True(t, f.spans == nil, "a regular table is indexed")
}

// TestIrregularTables looks every address up in tables of any order and overlap
// and compares with the plain meaning: of the entries that cover it, the one
// that begins last; of those the shortest.
func TestIrregularTables(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for run := range 2000 {
		entries := make([]RuntimeFunction, rnd.Intn(12))
		for i := range entries {
			b := uint32(rnd.Intn(40))
			entries[i] = RuntimeFunction{b, uint32(int(b) + rnd.Intn(20) - 4), uint32(i) * 2}
		}
		f := image(pdata(entries...), nil)
		for rva := range uint32(64) {
			fn, ok := f.Lookup(rva)
			want, covered := bestEntry(entries, rva)
			if ok != covered || ok && (fn.Begin != want.Begin || fn.End != want.End) {
				t.Fatalf("run %d: %v at %d: %v %v, want %v %v", run, entries, rva, fn, ok, want, covered)
			}
		}
	}
}

func bestEntry(entries []RuntimeFunction, rva uint32) (best RuntimeFunction, ok bool) {
	for _, e := range entries {
		if e.Contains(rva) && (!ok || e.Begin > best.Begin || e.Begin == best.Begin && e.End < best.End) {
			best, ok = e, true
		}
	}
	return best, ok
}

func TestCheck(t *testing.T) {
	info := func(b ...byte) []rva.Block { return []rva.Block{{RVA: 0x5000, Data: b}} }
	chain := func(at uint32, to RuntimeFunction) rva.Block {
		return rva.Block{RVA: at, Data: append([]byte{0x21, 0, 0, 0}, pdata(to)...)}
	}
	fn := RuntimeFunction{0x1000, 0x1100, 0x5000}
	for _, c := range []struct {
		name   string
		fn     RuntimeFunction
		blocks []rva.Block
		why    Reason
		offset uint64
	}{
		{"sound", fn, info(1, 8, 2, 0, 8, 0x42, 4, 0x50), OK, 0},
		{"sound, version 2", fn, info(2, 8, 3, 0, 3, 0x16, 0x80, 0x06, 4, 0x50, 0, 0), OK, 0},
		{"ends before it begins", RuntimeFunction{0x1100, 0x1000, 0x5000},
			info(1, 0, 0, 0), BadRange, 0x1100},
		{"outside the image", RuntimeFunction{0x1000, 0x100000, 0x5000}, info(1, 0, 0, 0), Outside, 0x1000},
		{"information outside", RuntimeFunction{0x1000, 0x1100, 0x6000}, info(1, 0, 0, 0), Short, 0x6000},
		{"version 3", fn, info(3, 0, 0, 0), Version3, 0x5000},
		{"reserved operation", fn, info(1, 8, 2, 0, 8, 0x42, 4, 7), BadOpcode, 0x5006},
		{"epilog of version 2 in version 1", fn, info(1, 8, 2, 0, 8, 6, 4, 0x50), BadOpcode, 0x5004},
		{"operand past the count", fn, info(1, 8, 1, 0, 8, 1, 4, 0), BadOperand, 0x5004},
		{"offsets go up", fn, info(1, 8, 2, 0, 4, 0x42, 8, 0x50), BadOrder, 0x5006},
		{"offset past the prolog", fn, info(1, 7, 1, 0, 8, 0x42, 0, 0), BadOrder, 0x5004},
		{"chained with handler", fn,
			info(append([]byte{0x29, 0, 0, 0}, make([]byte, 16)...)...), BadFlags, 0x5000},
		{"epilog of no bytes", fn, info(2, 0, 2, 0, 0, 0x16, 0, 6), BadEpilog, 0x5004},
		{"epilog longer than the function", RuntimeFunction{0x1000, 0x1002, 0x5000},
			info(2, 0, 2, 0, 3, 0x16, 0, 6), BadEpilog, 0x5004},
		{"epilog before the function", fn, info(2, 0, 2, 0, 3, 0x06, 1, 0x16), BadEpilog, 0x5006},
		{"epilog past the function", fn, info(2, 0, 2, 0, 3, 0x06, 2, 0x06), BadEpilog, 0x5006},
		{"epilog among prolog codes", fn, info(2, 8, 2, 0, 8, 0x42, 3, 0x16), BadOpcode, 0x5006},
		{"chained to itself", fn, []rva.Block{chain(0x5000, fn)}, ChainDepth, 0x1000},
		{"chained to a loop of two", fn,
			[]rva.Block{chain(0x5000, RuntimeFunction{0, 1, 0x6000}), chain(0x6000, fn)}, ChainDepth, 0},
		{"chained to indirect entries without end", fn,
			[]rva.Block{chain(0x5000, RuntimeFunction{0, 1, 0x7001}),
				{RVA: 0x7000, Data: pdata(RuntimeFunction{0, 1, 0x7001})}}, IndirectLoop, 0},
	} {
		f := image(pdata(c.fn), append(c.blocks, rva.Block{RVA: 0x8000, Data: make([]byte, 4)}))
		err := f.Check(c.fn)
		var fe *Error
		if errors.As(err, &fe); (err != nil) != (c.why != OK) ||
			err != nil && (fe.Fault.Reason != c.why || c.offset != 0 && place(fe) != c.offset) {
			t.Errorf("%s: %v, want %v at %#x", c.name, err, c.why, c.offset)
		}
		if err != nil && (!strings.Contains(err.Error(), c.why.String()) ||
			!strings.Contains(err.Error(), fe.Structure)) {
			t.Errorf("%s: the error does not say what is wrong: %v", c.name, err)
		}
	}
}

// A frame is at least what the prologs of the function and its parents allocate, and the return address.
func TestLeastFrame(t *testing.T) {
	own := RuntimeFunction{0x1000, 0x1100, 0x5000} // sub rsp, 40; push rbp
	f := image(pdata(own), []rva.Block{
		{RVA: 0x5000, Data: []byte{1, 8, 2, 0, 8, 0x42, 4, 0x50}},
		{RVA: 0x6000, Data: append([]byte{0x21, 0, 0, 0}, pdata(own)...)},
		{RVA: 0x6100, Data: append([]byte{0x21, 0, 0, 0}, pdata(RuntimeFunction{0, 1, 0x7001})...)},
		{RVA: 0x6200, Data: append([]byte{0x21, 0, 0, 0}, pdata(RuntimeFunction{0, 1, 0x7101})...)},
		{RVA: 0x7000, Data: pdata(own)},
		{RVA: 0x7100, Data: pdata(RuntimeFunction{0, 1, 0x7101})},
		{RVA: 0x7200, Data: []byte{1, 0, 1, 0, 0, 0x0a, 0, 0}},
		{RVA: 0x7300, Data: []byte{4, 0, 0, 0}},
	})
	for _, c := range []struct {
		name       string
		unwind, pc uint32
		want       uint64
	}{
		{"in its body", 0x5000, 0x1010, 56},
		{"in its prolog", 0x5000, 0x1004, 0},
		{"chained", 0x6000, 0x1010, 56},
		{"chained to an indirect entry", 0x6100, 0x1010, 56},
		{"chained to an indirect entry without end", 0x6200, 0x1010, 0},
		{"a machine frame", 0x7200, 0x1010, 0},
		{"version 4", 0x7300, 0x1010, 0},
	} {
		expect.Equal(t, f.LeastFrame(RuntimeFunction{0x1000, 0x1100, c.unwind}, c.pc), c.want, c.name)
	}
}

// TestChainDepth: 32 parents are followed, as on Windows, and no more.
func TestChainDepth(t *testing.T) {
	var blocks []rva.Block
	for i := range uint32(40) {
		blocks = append(blocks, rva.Block{RVA: 0x5000 + 0x20*i,
			Data: append([]byte{0x21, 0, 0, 0},
				pdata(RuntimeFunction{i + 1, i + 2, 0x5000 + 0x20*(i+1)})...)})
	}
	blocks = append(blocks, rva.Block{RVA: 0x5000 + 0x20*40, Data: []byte{1, 0, 0, 0}})
	f := image(nil, blocks)
	for links, want := range map[uint32]Reason{0: OK, 1: OK, 32: OK, 33: ChainDepth, 40: ChainDepth} {
		fn := RuntimeFunction{0x100, 0x200, 0x5000 + 0x20*(40-links)}
		_, why := f.Primary(fn)
		expect.True(t, why == want, "%d links: %v", links, why)
		err := f.Check(fn)
		expect.True(t, (err == nil) == (want == OK), "%d links: %v", links, err)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := OK; r <= EpilogCodes; r++ {
		if s := r.String(); s == "" || s == "reason?" || seen[s] {
			t.Errorf("reason %d is called %q", r, s)
		} else {
			seen[s] = true
		}
	}
	expect.Equal(t, len(reasons), int(EpilogCodes)+1, "names for %d reasons", EpilogCodes+1)
}

func TestLookupsAllocateNothing(t *testing.T) {
	f := image(pdata(RuntimeFunction{0x100, 0x200, 0x5000}),
		[]rva.Block{{RVA: 0x5000, Data: []byte{1, 8, 2, 0, 8, 0x42, 4, 0x50}}})
	var sum int
	n := testing.AllocsPerRun(100, func() {
		fn, _ := f.Find(0x180)
		i, _ := f.Info(fn.Unwind)
		c, _ := i.Code(i.Codes)
		p, _ := f.Primary(fn)
		b, _ := f.image.Bytes(0x5000, 4)
		sum += int(c.Operand) + int(p.Begin) + len(b)
	})
	expect.True(t, n == 0 && sum != 0, "%v allocations", n)
}

// image is a table over some blocks.
func image(pdata []byte, blocks []rva.Block) *Table {
	b := rva.Sort(blocks)
	t := New(pdata, b, false)
	t.SetSize(b.End())
	return &t
}

// place is the address of what an error refuses in an UNWIND_INFO, else the
// begin of the function.
func place(e *Error) uint64 {
	if e.Structure == "RUNTIME_FUNCTION" {
		return uint64(e.RVA)
	}
	return uint64(e.RVA + e.Fault.Offset)
}

// pdata writes x64 RUNTIME_FUNCTIONs.
func pdata(entries ...RuntimeFunction) (b []byte) {
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint32(b, e.Begin)
		b = binary.LittleEndian.AppendUint32(b, e.End)
		b = binary.LittleEndian.AppendUint32(b, e.Unwind)
	}
	return b
}

// Every operation that has a name is decoded in some UNWIND_INFO, but SPARE_CODE,
// and no other is.
func TestEveryOperationIsDecoded(t *testing.T) {
	infos := []Info{{Version: 1, FrameReg: 5}, {Version: 2},
		{Version: 1, FrameReg: 5, FrameOffset: 240, Unix: true}}
	for op := range Op(16) {
		decoded := false
		for i := range infos {
			_, why := infos[i].Code([]byte{4, byte(op), 0, 0, 0, 0})
			decoded = decoded || why == OK
		}
		expect.Equal(t, decoded, op.String() != "op?" && op != UWOP_SPARE_CODE,
			"operation %d, %v, needs both a name in opNames and a case in Code or longCode: it is decoded", op, op)
	}
}
