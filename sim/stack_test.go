package sim_test

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A stack on which every word, from any byte on, is the address of managed code:
// wherever a frame pointer leads, the walk arrives at a seed. It may be used only
// if the CLR can dereference it.
func TestHostileStacks(t *testing.T) {
	tl := newTools()
	var tried, refused [2]int
	both(t, func(r *recorded) bool {
		few := r.top() > 0 && r.top() < 4 && tried[r.w.Arch] < 25
		if few {
			tried[r.w.Arch]++
		}
		return few
	}, func(t *testing.T, r *recorded) {
		s, _ := tl.useWith(r, nil)
		managed := r.truth[r.top()].State.PC
		align := uint64(8)
		if r.w.Arch == image.ARM64 {
			align = 16
		}
		b := r.capture.Thread
		stack := make([]byte, len(r.capture.Stack.Data)+16)
		for _, by := range []uint64{0, 2} {
			for shift := range uint64(8) {
				for i := int(shift); i+8 <= len(stack); i += 8 {
					binary.LittleEndian.PutUint64(stack[i:], managed+by)
				}
				for _, below := range []uint64{8, 16, 24, 32, 40, 48, 64, 80, 96, 112, 512} {
					c := r.capture
					c.Stack = memory.Run{Addr: r.capture.Stack.Addr, Data: stack}
					fp := b.StackHigh - below + shift
					c.Regs.SetFP(fp)
					v := s.Seed(&c)
					st := r.state(&c)
					sp := st.R[r.w.Arch.SP()]
					sound := sp%align == 0 && sp >= b.StackLow && sp < b.StackHigh &&
						(r.w.Arch == image.AMD64 || st.PC%4 == 0)
					if v == seed.Found && !sound {
						t.Fatalf("a seed is found at ip %#x sp %#x; the stack is %#x-%#x",
							st.PC, sp, b.StackLow, b.StackHigh)
					}
					if v == seed.Unsafe && !sound {
						refused[r.w.Arch]++
					}
				}
			}
		}
	})
	expect.True(t, refused[0] != 0 && refused[1] != 0, "seeds refused for where they point: %v", refused)
}

// What stands below a guess is a guess, and so is the seed, even if the frames
// between have restored every register: without the unwind data of some modules
// walks arrive at managed code all the same.
func TestGuessedSeeds(t *testing.T) {
	tl := newTools()
	out := make([]unwind.Frame, 256)
	var by seed.Witness
	var arrived, whole [2]int
	both(t, func(r *recorded) bool { return r.top() > 0 }, func(t *testing.T, r *recorded) {
		tl.use(r)
		all := r.w.Kit.Table
		for missing := range 1 << all.Len() {
			if missing == 0 {
				continue
			}
			var mods []module.Module
			for i := range all.Len() {
				if missing>>i&1 == 0 {
					mods = append(mods, *all.At(i))
				}
			}
			less := module.NewTable(all.Generation()+uint32(missing)<<20, mods, all.Managed())
			b := unwind.Bounds{Low: r.capture.Thread.StackLow, High: r.capture.Thread.StackHigh, Guess: true}
			mem := memory.New(r.capture.Stack)
			u, regs := tl.u[r.w.Arch], r.capture.Regs
			u.SetTable(less)
			at := unwind.Interrupted(&regs)
			var none *managed.Specials
			o := seed.Find(none, u, &at, mem, &b, out, &by)
			known := regs.Lost() == 0
			guessed := false
			for i := 1; i < o.Frames; i++ {
				guessed = guessed || out[i].Trust.Doubtful()
			}
			last := o.Frames > 0 && out[o.Frames-1].Module < 0 // and the step from there
			if o.Stop != unwind.Managed || !guessed && !last {
				continue
			}
			arrived[r.w.Arch]++
			if known {
				whole[r.w.Arch]++
			}
			must.True(t, !o.Verdict.Usable() && at.Trust.Doubtful(),
				"%v after %d frames, trust %v", o.Verdict, o.Frames, at.Trust)
		}
	})
	t.Logf("arrived by a guess: %v, with every register known: %v", arrived, whole)
	expect.True(t, arrived[0] != 0 && arrived[1] != 0, "walks that arrived by a guess: %v", arrived)
}
