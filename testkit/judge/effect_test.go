package judge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// The CFA that `seedwalk info --at` shows at an instruction is the stack
// pointer its caller really had.
func TestShownEffectIsTrue(t *testing.T) {
	for _, name := range []string{"amd64-exec", "amd64-native", "arm64-exec",
		"arm64-native", "arm64-packedx"} {
		t.Run(name, func(t *testing.T) {
			checked, bad := 0, 0
			_, err := pevec.Each(name+".jsonl.gz", func(v *pevec.Vector) error {
				n, wrong := shownEffects(t, v)
				checked, bad = checked+n, bad+wrong
				return nil
			})
			if errors.Is(err, pevec.ErrAbsent) {
				t.Skip("SKIPPED-CHECK: ", err)
			}
			t.Logf("%d effects, %d not true", checked, bad)
			expect.True(t, err == nil && checked != 0 && bad == 0, "%v %v %v", err, checked, bad)
		})
	}
}

func shownEffects(t *testing.T, v *pevec.Vector) (checked, bad int) {
	x := NewPE(&Score{})
	must.Do(t, x.load(v))
	im := inspect.FromPE(x.file)
	shown := map[uint64]string{}
	for i := range v.Functions {
		if f, err := im.At(fmt.Sprintf("0x%x", uint64(v.Functions[i].Begin))); err == nil {
			for _, l := range f.Lines {
				shown[l.Addr] = l.CFA
			}
		}
	}
	for i := range v.Points {
		p := &v.Points[i]
		s := must.Get(x.newStep(v, p))(t)
		cfa, ok := evaluate(s, shown[uint64(*p.PC)])
		want := v.Expect.SP
		if want == nil {
			want = v.Expect.RSP
		}
		if !ok || want == nil {
			continue
		}
		checked++
		if cfa != uint64(*want) {
			if bad++; bad <= 2 {
				t.Errorf("%s at %x %s %q: shown %s = %x, want %x", v.ID, uint64(*p.PC), p.Where, p.Ins,
					shown[uint64(*p.PC)], cfa, uint64(*want))
			}
		}
	}
	return checked, bad
}

// evaluate computes "rsp+16" or "x29-8".
func evaluate(s stepper, text string) (uint64, bool) {
	i := strings.LastIndexAny(text, "+-")
	if i < 0 || strings.Contains(text, " ") {
		return 0, false
	}
	off, err := strconv.ParseInt(text[i:], 10, 64)
	if err != nil {
		return 0, false
	}
	name := text[:i]
	switch r := s.(type) {
	case *stepAMD64:
		n := snap.AMD64Index(name)
		return r.regs.GPR[max(n, 0)] + uint64(off), n >= 0
	case *stepARM64:
		v, known := arm64Value(&r.regs, name)
		return v + uint64(off), known
	}
	return 0, false
}
