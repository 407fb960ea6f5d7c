package image

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestBuildPE(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	names := []string{"zeta", "alpha", "mid"}
	var funcs []Func
	for _, n := range names {
		funcs = append(funcs, RandomAMD64(r, PE, n))
	}
	im := must.Get(Build(AMD64, PE, "sim.dll", 0x180000000, funcs))(t)
	for mapped, open := range map[bool]func([]byte, string) (*pe.File, error){true: pe.FromMemory,
		false: pe.New} {
		f, err := open(im.File, "sim.dll")
		must.True(t, err == nil && len(f.Problems()) == 0, "%v %v %v", mapped, err, f.Problems())
		expect.True(t, f.Machine() == pe.MachineAMD64 && f.ImageBase() == im.Base &&
			int(f.SizeOfImage()) == len(im.File),
			"mapped %v: machine %#x, base %#x, size %#x", mapped, f.Machine(), f.ImageBase(), f.SizeOfImage())
		exported := map[string]uint32{}
		exports := must.Get(f.Exports())(t)
		for _, e := range exports {
			exported[e.Name] = e.RVA
		}
		for i := range im.Funcs {
			if fn := &im.Funcs[i]; exported[fn.Name] != fn.RVA || im.Find(im.Base+uint64(fn.End())-1) != fn ||
				im.Find(im.Base+uint64(fn.End())) == fn {
				t.Errorf("mapped %v: %s at %#x: exported %#x", mapped, fn.Name, fn.RVA, exported[fn.Name])
			}
		}
	}
	checkLaidOut(t, im)
}

// checkLaidOut: aligned, apart, traps between, calls and jumps to another
// function.
func checkLaidOut(t *testing.T, im *Image) {
	t.Helper()
	begins := map[uint32]bool{}
	for i := range im.Funcs {
		begins[im.Funcs[i].RVA] = true
	}
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		expect.True(t, fn.RVA%16 == 0 && im.File[fn.End()] == 0xcc,
			"%s at %#x, behind it %#x", fn.Name, fn.RVA, im.File[fn.End()])
		for _, op := range fn.Ops {
			at := fn.RVA + op.Off
			expect.True(t, string(im.File[at:at+uint32(len(op.Code))]) == string(op.Code),
				"%s: op at %#x is not in the file", fn.Name, at)
			if op.Code[0] == 0xe8 && len(op.Code) == 5 {
				to := at + 5 + binary.LittleEndian.Uint32(op.Code[1:])
				expect.True(t, begins[to] && to != fn.RVA, "%s: call at %#x goes to %#x", fn.Name, at, to)
			}
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	good := RandomAMD64(rand.New(rand.NewPCG(5, 5)), PE, "f")
	gap := good
	gap.Ops = append([]Op(nil), good.Ops...)
	gap.Ops[0].Off = 1
	for name, fn := range map[string]Func{"no ops": {Name: "f"}, "a gap": gap} {
		_, err := Build(AMD64, PE, "x", 0, []Func{fn})
		expect.True(t, err != nil, "%s: built", name)
	}
	_, err := Build(AMD64, PE, "x", 0, nil)
	expect.True(t, err == nil, "an image without functions: %v", err)
}

// TestApart: a function whose size is a multiple of 16 has a trap behind it too.
func TestApart(t *testing.T) {
	var a asm
	for range 16 {
		a.nop(1)
	}
	fn := Func{Name: "f", Ops: a.ops, NoInfo: true}
	im := must.Get(Build(AMD64, PE, "x", 0x10000, []Func{fn, fn}))(t)
	checkLaidOut(t, im)
}
