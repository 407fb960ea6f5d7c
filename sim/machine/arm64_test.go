package machine

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Functions of ARM64 by their effects alone; their code is nops.

const xSP = 31

var nopARM64 = []byte{0x1f, 0x20, 0x03, 0xd5}

func funcARM64(name string, parts ...[]image.Effect) image.Func {
	fn := image.Func{Name: name, NoInfo: true}
	for i, e := range parts {
		op := image.Op{Off: uint32(4 * i), Code: nopARM64, Part: image.Prolog, Effects: e}
		switch {
		case len(e) == 0 || e[0].Kind == image.Call:
			op.Part = image.Body
		case i > len(parts)/2:
			op.Part = image.Epilog
		}
		fn.Ops = append(fn.Ops, op)
	}
	return fn
}

// saver signs and saves its return address, x19 and d8, allocates, calls.
func saver(signed bool) image.Func {
	f := [][]image.Effect{
		{{Kind: image.Sign}},
		{{Kind: image.Store, Reg: 29, Base: xSP, Imm: -32}, {Kind: image.Store, Reg: 30, Base: xSP, Imm: -24},
			{Kind: image.Add, Reg: xSP, Base: xSP, Imm: -32}},
		{{Kind: image.Store, Reg: 19, Base: xSP, Imm: 16}, {Kind: image.StoreV, Reg: 8, Base: xSP, Imm: 24}},
		{{Kind: image.Add, Reg: 29, Base: xSP}},
		{{Kind: image.Add, Reg: xSP, Base: xSP, Imm: -64}},
		nil,
		{{Kind: image.Call}},
		nil,
		{{Kind: image.Call}},
		{{Kind: image.Add, Reg: xSP, Base: 29}},
		{{Kind: image.Load, Reg: 19, Base: xSP, Imm: 16}, {Kind: image.LoadV, Reg: 8, Base: xSP, Imm: 24}},
		{{Kind: image.Load, Reg: 29, Base: xSP}, {Kind: image.Load, Reg: 30, Base: xSP, Imm: 8},
			{Kind: image.Add, Reg: xSP, Base: xSP, Imm: 32}},
		{{Kind: image.Auth}},
		{{Kind: image.Return}},
	}
	if !signed {
		f = append(f[1:len(f)-2], f[len(f)-1])
	}
	return funcARM64("saver", f...)
}

// TestARM64 runs calls, leafs and signals, and holds the rows of every frame
// against the truth at every op.
func TestARM64(t *testing.T) {
	root := saver(false)
	root.Root = true
	im := must.Get(image.Build(image.ARM64, image.ELF, "arm64", imageBase, []image.Func{
		root, saver(true), saver(false), funcARM64("leaf", nil, nil, []image.Effect{{Kind: image.Return}}),
		image.SignalReturn(image.ARM64)}))(t)
	th := New(image.ARM64, stackLow, stackHigh, 7)
	r := rand.New(rand.NewPCG(7, 7))
	th.Start(im, &im.Funcs[0])
	deepest, ends := 0, 0
	for range 4000 {
		checkRowsARM64(t, th)
		deepest = max(deepest, th.Depth())
		if r.IntN(30) == 0 && th.Depth() < 6 && !th.Interrupt(im, &im.Funcs[1+r.IntN(3)]) {
			t.Fatal("no signal")
		}
		switch th.Step() {
		case AtCall:
			if th.Depth() >= 6 || !th.Call(im, &im.Funcs[1+r.IntN(3)]) {
				th.Skip()
			}
		case Ended:
			ends++
			th.Start(im, &im.Funcs[0])
		case Faulted, Diverted:
			t.Fatalf("stopped at %#x", th.State().PC)
		}
	}
	expect.True(t, deepest >= 6 && ends != 0, "depth %d, %d ends", deepest, ends)
}

func checkRowsARM64(t testing.TB, th *Thread) {
	t.Helper()
	out := th.Truth(nil)
	st := out[0].State
	for i := range out[:len(out)-1] {
		want := &out[i+1]
		exact, ok := StepRow(image.ARM64, out[i].Image, out[i].Func, &st, th.Word)
		if !ok || exact != want.Exact {
			t.Fatalf("frame %d, %s: %v, exact %v", i, out[i].Func.Name, ok, exact)
		}
		mask := uint32(0xfff8_0000) // X19-X30, SP
		if exact {
			mask = ^uint32(0)
		}
		must.Equal(t, diff(&st, &want.State, mask), "",
			"frame %d, %s, from %s at op %d", i+1, want.Func.Name, out[i].Func.Name, th.at)
		for v := 8; v < 16; v++ {
			must.Equal(t, st.V[v][0], want.State.V[v][0], "frame %d: d%d", i+1, v)
		}
	}
}

func TestStrip(t *testing.T) {
	for _, v := range []uint64{0x0000_7fff_1234_5678, 0xffff_8000_1234_5678} {
		for _, code := range []uint64{0, pacBits, 0x5a35 << 48 & pacBits} {
			expect.Equal(t, strip(v^code), v, "signed as %#x", v^code)
		}
	}
}
