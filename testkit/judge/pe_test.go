package judge

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
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
		{"unknown version", strings.Replace(x64Vector, `"0105020005320130"`, `"0505020005320130"`, 1), 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Score{}
			must.Do(t, NewPE(s).Line([]byte(c.line)))
			got := s.Tallies[0]
			if got.Right != c.right || got.Wrong != c.wrong || got.Refused != c.refused || got.Bad() != (c.right == 0) {
				t.Errorf("%+v", got)
			}
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
		{"x64", imageWriter{base: 0x180000000, functions: []pevec.Function{{Begin: 0x1000, End: 0x100c, Data: 0x2000}}, blocks: []memory.Run{
			{Addr: 0x1000, Data: []byte{0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3}},
			{Addr: 0x2000, Data: []byte{1, 5, 2, 0, 5, 0x32, 1, 0x30}}}}, "1005"},
		{"x64-chained", imageWriter{base: 0x180000000, functions: []pevec.Function{{Begin: 0x1000, End: 0x1002, Data: 0x2000}, {Begin: 0x1002, End: 0x1004, Data: 0x2010}}, blocks: []memory.Run{
			{Addr: 0x1000, Data: []byte{0x53, 0x90, 0x5b, 0xc3}},
			{Addr: 0x2000, Data: []byte{1, 1, 1, 0, 1, 0x30, 0, 0}},
			{Addr: 0x2010, Data: []byte{0x21, 0, 0, 0, 0, 0x10, 0, 0, 2, 0x10, 0, 0, 0, 0x20, 0, 0}}}}, "0x180001002"},
		{"arm64-packed", imageWriter{arm64: true, base: 0x140000000, functions: []pevec.Function{{Begin: 0x1000, Data: 1 | 6<<2 | 3<<21 | 2<<23}}, blocks: []memory.Run{
			{Addr: 0x1000, Data: []byte{0xfd, 0x7b, 0xbe, 0xa9, 0xfd, 3, 0, 0x91, 0x1f, 0x20, 3, 0xd5, 0x1f, 0x20, 3, 0xd5, 0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 3, 0x5f, 0xd6}}}}, "1008"},
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
