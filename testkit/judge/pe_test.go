package judge

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
)

// x64Vector: push rbx; sub rsp, 20h; nop; add rsp, 20h; pop rbx; ret at 1000h,
// interrupted at the nop.
const x64Vector = `{"id":"one","kind":"exec","arch":"amd64","base":"180000000","functions":[["1000","100b","2000"]],` +
	`"mem":[["1000","534883ec20904883c4205bc3"],["2000","0105020005320130"]],` +
	`"entry":{"gpr":{"rbx":"11"}},"expect":{"rip":"7ff600001234","rsp":"7f0000001030","gpr":{"rbx":"22"}},` +
	`"points":[{"pc":"1005","fn":0,"where":"body","ins":"nop","gpr":{"rsp":"7f0000001000"},"stack":[["7f0000001020","2200000000000000"],["7f0000001028","34120000f67f0000"]]}]}`

func TestPEPoints(t *testing.T) {
	for _, c := range []struct {
		name, line            string
		right, wrong, refused int
	}{
		{"right", x64Vector, 1, 0, 0},
		{"wrong register", strings.Replace(x64Vector, `"rbx":"22"`, `"rbx":"23"`, 1), 0, 1, 0},
		{"wrong address", strings.Replace(x64Vector, `7ff600001234`, `7ff600001235`, 1), 0, 1, 0},
		{"unknown version", strings.Replace(x64Vector, `"0105020005320130"`,
			`"0505020005320130"`, 1), 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Score{}
			must.Do(t, NewPE(s).Line([]byte(c.line)))
			got := s.Tallies[0]
			expect.True(t, got.Right == c.right && got.Wrong == c.wrong && got.Refused == c.refused &&
				got.Bad() == (c.right == 0), "%+v", got)
		})
	}
}

// Functions as `seedwalk info --at` shows them, over images made by hand.
func TestPEFunctionGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		w    imageWriter
		at   string
	}{
		{"x64", imageWriter{base: 0x180000000,
			functions: []pevec.Function{{Begin: 0x1000, End: 0x100c, Data: 0x2000}}, blocks: []memory.Run{
				{Addr: 0x1000, Data: []byte{0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48,
					0x83, 0xc4, 0x20, 0x5b, 0xc3}},
				{Addr: 0x2000, Data: []byte{1, 5, 2, 0, 5, 0x32, 1, 0x30}}}}, "1005"},
		{"x64-chained", imageWriter{base: 0x180000000,
			functions: []pevec.Function{{Begin: 0x1000, End: 0x1002, Data: 0x2000},
				{Begin: 0x1002, End: 0x1004, Data: 0x2010}}, blocks: []memory.Run{
				{Addr: 0x1000, Data: []byte{0x53, 0x90, 0x5b, 0xc3}},
				{Addr: 0x2000, Data: []byte{1, 1, 1, 0, 1, 0x30, 0, 0}},
				{Addr: 0x2010, Data: []byte{0x21, 0, 0, 0, 0, 0x10, 0, 0, 2, 0x10, 0, 0, 0, 0x20, 0, 0}}}},
			"0x180001002"},
		{"arm64-packed", imageWriter{arm64: true, base: 0x140000000,
			functions: []pevec.Function{{Begin: 0x1000, Data: 1 | 6<<2 | 3<<21 | 2<<23}},
			blocks: []memory.Run{
				{Addr: 0x1000, Data: []byte{0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 3, 0,
					0x91, 0x1f, 0x20, 3, 0xd5, 0x1f,
					0x20, 3, 0xd5, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 3, 0x5f, 0xd6}}}}, "1008"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := must.Get(c.w.bytes())(t)
			f := must.Get(pe.New(data, c.name))(t)
			fn := must.Get(inspect.FromPE(f).At(c.at))(t)
			var b bytes.Buffer
			fn.Text(&b)
			file := filepath.Join("testdata", "function-"+c.name+".txt")
			golden.Check(t, file, b.String())
		})
	}
}

// callVector: push rbx; call at 1000h, which is the end of the function, and
// another function behind it; interrupted behind the call.
const callVector = `{"id":"call","kind":"exec","arch":"amd64","base":"180000000","functions":[["1000","1006","2000"],["1006","1008","2008"]],` +
	`"mem":[["1000","53e8fbffffff90c3"],["2000","0101010001300000"],["2008","01000000"]],` +
	`"entry":{"gpr":{"rbx":"11"}},"expect":{"rip":"7ff600001234","rsp":"7f0000001010","gpr":{"rbx":"22"}},` +
	`"points":[{"pc":"1006","fn":0,"where":"body","ins":"nop","after_call":true,"gpr":{"rsp":"7f0000001000"},"stack":[["7f0000001000","2200000000000000"],["7f0000001008","34120000f67f0000"]]}]}`

// A return address is looked up as one: behind a call that ends its function,
// another function begins.
func TestReturnAddresses(t *testing.T) {
	s := &Score{}
	must.Do(t, NewPE(s).Line([]byte(callVector)))
	expect.True(t, s.Tallies[0].Kind == "amd64 exec" && s.Tallies[0].Right == 0,
		"as an interrupted instruction: %+v", s.Tallies[0])
	expect.True(t, len(s.Tallies) == 2 && s.Tallies[1].Kind == "amd64 exec, return addresses" &&
		s.Tallies[1].Right == 1, "as a return address: %+v", s.Tallies)
	s = &Score{}
	err := NewPE(s).Line([]byte(strings.Replace(callVector, `"after_call":true,`, "", 1)))
	expect.True(t, err == nil && len(s.Tallies) == 1, "not behind a call: %v, %+v", err, s.Tallies)
}

// Behind a callee that moves the stack pointer, the registers are not those of a
// walk, and are judged as interrupted only.
func TestCalleeMoves(t *testing.T) {
	line := `{"id":"pop","kind":"exec","arch":"arm64","base":"180000000","functions":[],"mem":[["1000","00000094c0035fd6"]],"entry":{"x":{"x19":"1"}},` +
		`"expect":{"pc":"180009000","sp":"7f0000001010","x":{}},"points":[{"pc":"1000","sp":"7f0000001000","x":{"x30":"180009000"}},{"pc":"1004","sp":"7f0000001010","after_call":true,"x":{"x30":"180009000"}}]}`
	s := &Score{}
	err := NewPE(s).Line([]byte(line))
	expect.True(t, err == nil && len(s.Tallies) == 1, "%v, %+v", err, s.Tallies)
	s = &Score{}
	err = NewPE(s).Line([]byte(strings.Replace(line, `"sp":"7f0000001000"`, `"sp":"7f0000001010"`, 1)))
	expect.True(t, err == nil && len(s.Tallies) == 2, "%v, %+v", err, s.Tallies)
}

// A malformed input's own registers and memory are the ones that it is stepped
// with.
func TestMalformedOwnStack(t *testing.T) {
	const line = `{"id":"own","kind":"malformed","arch":"amd64","base":"180000000","image_size":"10000","functions":[["1000","1100","2000"]],` +
		`"mem":[["1000","90909090"],["2000","0101010001300000"]],"pc":"1002","must":"ok","note":"",` +
		`"gpr":{"rsp":"7f0000001000"},"stack":[["7f0000001000","2200000000000000"],["7f0000001008","34120000f67f0000"]],CTX` +
		`"expect":{"rip":"7ff600001234","rsp":"7f0000001010","gpr":{"rbx":"22"}}}`
	for name, ctx := range map[string]string{"alone": "", "beside another": `"ctx":{"sp":"6f0000001000"},`} {
		t.Run(name, func(t *testing.T) {
			s := &Score{Max: 1}
			must.Do(t, NewPE(s).Line([]byte(strings.Replace(line, "CTX", ctx, 1))))
			expect.Equal(t, s.Tallies[0].Right, 1, s.Tallies[0])
		})
	}
}

// A whole walk that is not what single steps give is wrong.
func TestWalkAgainstSteps(t *testing.T) {
	a, b := unwind.Frame{IP: 1, Trust: unwind.TrustContext}, unwind.Frame{IP: 2, Trust: unwind.TrustCFI}
	guessed := b
	guessed.Trust = unwind.TrustFramePointer
	for _, c := range []struct {
		name   string
		walked []unwind.Frame
		stop   unwind.Stop
		same   bool
		want   string
	}{
		{"the same", []unwind.Frame{a, b}, unwind.EndOfStack, true, ""},
		{"another frame", []unwind.Frame{a, a}, unwind.EndOfStack, true, "frame 1"},
		{"another trust", []unwind.Frame{a, guessed}, unwind.EndOfStack, true, "frame 1"},
		{"fewer", []unwind.Frame{a}, unwind.EndOfStack, true, "1 frames"},
		{"more", []unwind.Frame{a, b, b}, unwind.EndOfStack, true, "3 frames"},
		{"another end", []unwind.Frame{a, b}, unwind.NoInfo, true, "no-info"},
		{"other registers", []unwind.Frame{a, b}, unwind.EndOfStack, false, "registers"},
	} {
		st := stack{frames: []unwind.Frame{a, b}, stop: unwind.EndOfStack, walked: c.walked}
		st.disagreement(c.stop, c.same)
		expect.True(t, strings.Contains(st.disagree, c.want) && (st.disagree == "") == (c.want == ""),
			"%s: %q", c.name, st.disagree)
	}
	st := stack{stop: unwind.EndOfStack, disagree: "somewhere"}
	v, _, why := judge(&snap.Snapshot{Class: "cfi_exact"}, &st)
	expect.True(t, v == wrong && why == "somewhere", "a walk that disagrees is %v: %s", v, why)
	guess := stack{frames: []unwind.Frame{guessed}, walked: []unwind.Frame{guessed}, stop: unwind.EndOfStack}
	truth := snap.Snapshot{Class: "cfi_exact", Frames: []snap.Frame{{PC: 2, Kind: "ret"}}}
	v, good, why := judge(&truth, &guess)
	expect.True(t, v == refused && good == 1, "a guess where unwind data is whole is %v: %s", v, why)
	one, two := context.FromAMD64(context.AMD64{RIP: 1}), context.FromAMD64(context.AMD64{RIP: 2})
	w := walked{regs: one, frame: a, stop: unwind.BufferFull}
	expect.True(t, w.agrees(&one, &a, unwind.StopNone) && !w.agrees(&two, &a, unwind.StopNone) &&
		!w.agrees(&one, &b, unwind.StopNone) && !w.agrees(&one, &a, unwind.NoInfo),
		"a step and a walk of one frame are not told apart")
}
