package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind"
)

// What the threads of Mix.cs can have on their stacks: the source says how many
// frames of each method and function there are, so that a stack which lost some
// or has some twice is seen whatever the CLR and RtlVirtualUnwind say.

// mixed counts stacks by thread.
type mixed struct {
	o      *opinion // knows the images
	stacks map[string]int
	thrown int // recursions of which every frame had to be there
	faults faulted
}

// faulted counts the samples of the thread that raises null references.
type faulted struct{ all, whole, outside int }

func newMixed(o *opinion) *mixed { return &mixed{o: o, stacks: map[string]int{}} }

// mixGrammar says which stacks a thread can have, root last: a name for a method
// of Mix, c for one of the library, s for a stub, d for mix.dll, r for the
// runtime's native code, n for the system's, X for its RaiseException.
var mixGrammar = []struct {
	thread string
	stack  *regexp.Regexp
}{
	{"Spin", mixOf(`(Collatz ){0,2}`)},
	{"NativeSpin", mixOf(`(d )?(s )?`)},
	{"NativeSleep", mixOf(`(d )?(s )?`)},
	{"Stackalloc", mixOf(`((d )?(s )?Grow )?`)},
	{"Nested", mixOf(nested())},
	{"Allocate", mixOf(``)},
	{"Jit", mixOf(``)},
	{"Exceptions", mixOf(`((Descend ([crnsX] )*)*(Exceptions ([crnsX] )+(Descend ([crnsX] )*){9})?)?`)},
	{"ThrowingRecursion", mixOf(`((Fall|Fall2|FallToFinally|ThrowingRecursion) ([crnsX] )*)*`)},
	{"Contend", mixOf(`(HoldTheLock )?`)},
	{"NullReferences", mixOf(`(Peek |(Touch ){0,6}|NullReferences ([crnsX] )+(Peek |(Touch ){6}))`)},
	{"Sleeper", mixOf(``)},
	{"Main", regexp.MustCompile(`^([rnscX] )*(\.cctor (r )+)?Main (r )+(n ){5}$`)},
	{runtimes, regexp.MustCompile(`^([rnscX] )+n n $`)},
}

// mixOf is a thread's grammar between whatever the runtime has put on top, and
// its own first method.
func mixOf(stack string) *regexp.Regexp {
	return regexp.MustCompile(`^([rnscX] )*(get_Running )?` + stack + `[A-Z]\w+ (c ){2,3}(r )+n n $`)
}

// nested is what Down(8) makes: each level calls one frame of mix_down less, and
// its last calls the next level through a stub. The level on top may be anywhere.
func nested() string {
	var levels []string
	for top := range 9 {
		s := `([rnscd] )*(Collatz ){0,4}Down `
		for depth := top + 1; depth <= 8; depth++ {
			s += fmt.Sprintf(`s (r )+(d ){%d}(s )?Down `, depth+1)
		}
		levels = append(levels, s)
	}
	return "(" + strings.Join(levels, "|") + ")?"
}

// add holds a complete stack against the grammar of its thread: that of its
// outermost method of ours.
func (x *mixed) add(t *testing.T, m *matrix, s *raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	if !s.Result.Complete() {
		return
	}
	words, thread := make([]string, len(s.Frames)), runtimes
	for i := range s.Frames {
		if words[i] = x.word(t, s, i, names); len(words[i]) > 1 {
			thread = words[i]
		}
	}
	stack := strings.Join(words, " ") + " "
	why := x.recursion(words)
	for _, g := range mixGrammar {
		if g.thread == thread {
			x.stacks[thread]++
			if !g.stack.MatchString(stack) {
				why = "no such stack"
			}
			if why == "" {
				return
			}
		}
	}
	m.impossible++
	m.show(t, s, thread+": "+stack)
	t.Errorf("%s: %s: %s", thread, why, stack)
}

// addFaults counts a run's samples of the thread that raises null references, whatever
// became of each: it is the thread of which some samples show the methods.
func (x *mixed) addFaults(samples []*raw.Sample, names map[clr.FunctionID]string) {
	threads := map[uint64]bool{}
	for _, s := range samples {
		for i := range s.Frames {
			if name := names[s.Frames[i].Function]; name == "Mix.Touch" || name == "Mix.Peek" || name == "Mix.NullReferences" {
				threads[s.Capture.Thread.TID] = true
			}
		}
	}
	for _, s := range samples {
		switch {
		case !threads[s.Capture.Thread.TID]:
		case inWine(s):
			x.faults.outside++
		default:
			x.faults.all++
			if s.Result.Complete() {
				x.faults.whole++
			}
		}
	}
}

// recursion reports what is wrong with the frames of Fall and Touch that an exception
// was thrown over: it is thrown at the bottom only, 20 calls down or 5.
func (x *mixed) recursion(words []string) string {
	thrown := false
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "X":
			thrown = true
		case (w == "Fall" || w == "Touch") && thrown:
			n := 0
			for ; words[i] == w; i++ { // a root stands below
				n++
			}
			want := map[string]int{"ThrowingRecursion": 21, "FallToFinally": 6, "Fall2": n, "NullReferences": 6}[words[i]]
			if n != want {
				return fmt.Sprintf("%d frames of %s above %s, want %d", n, w, words[i], want)
			}
			x.thrown++
			thrown = false
		case len(w) > 1:
			thrown = false
		}
	}
	return ""
}

// word is a frame as the grammar calls it.
func (x *mixed) word(t *testing.T, s *raw.Sample, i int, names map[clr.FunctionID]string) string {
	t.Helper()
	f := &s.Frames[i]
	switch {
	case f.Kind == unwind.KindStub:
		return "s"
	case f.Function != 0:
		if method, ok := strings.CutPrefix(names[f.Function], "Mix."); ok {
			return method
		}
		return "c"
	case f.Module < 0 || int(f.Module) >= len(s.Images):
		return "?"
	}
	im := &s.Images[f.Module]
	switch im.Path[strings.LastIndexByte(im.Path, '\\')+1:] {
	case "mix.dll":
		return "d"
	case "coreclr.dll":
		return "r"
	case "kernelbase.dll":
		if raises(x.o.open(t, im), uint32(unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup()-im.Bias)) {
			return "X"
		}
	}
	return "n"
}

// raises reports whether rva is in RaiseException.
func raises(f *pe.File, rva uint32) bool {
	fn, why := f.AMD64().Find(rva)
	exports, _ := f.Exports()
	for i := range exports {
		if exports[i].Name == "RaiseException" {
			return why == peamd64.OK && exports[i].RVA == fn.Begin
		}
	}
	return false
}

// verdict asks for stacks of every thread.
func (x *mixed) verdict(t *testing.T) {
	t.Helper()
	t.Logf("complete stacks as their threads call, by thread: %v; %d recursions under an exception, each frame there", x.stacks, x.thrown)
	for _, g := range mixGrammar {
		if x.stacks[g.thread] == 0 && g.thread != runtimes {
			t.Errorf("no complete stack of %s", g.thread)
		}
	}
	if x.thrown == 0 {
		t.Error("no recursion under an exception")
	}
	f := x.faults
	t.Logf("the thread that raises null references: %d of %d stacks complete, %d more in Wine's system calls", f.whole, f.all, f.outside)
	if f.all == 0 || f.whole*100 < f.all*95 {
		t.Errorf("%d of %d stacks of the thread that raises null references are complete, want 95 %%", f.whole, f.all)
	}
}

// TestMixGrammar: a stack that lost one of its frames is noticed.
func TestMixGrammar(t *testing.T) {
	nested := "Collatz Collatz Down "
	for depth := 1; depth <= 8; depth++ {
		nested += "s r " + strings.Repeat("d ", depth+1) + "s Down "
	}
	nested += "Nested c c r r n n "
	thrown := "n X r r " + strings.Repeat("Fall ", 21) + "ThrowingRecursion c c r r n n "
	whole := func(stack string) bool {
		words := strings.Fields(stack)
		thread := words[len(words)-7]
		for _, g := range mixGrammar {
			if g.thread == thread {
				return g.stack.MatchString(stack) && newMixed(nil).recursion(words) == ""
			}
		}
		return false
	}
	touched := "n X r r r " + strings.Repeat("Touch ", 6) + "NullReferences c c r r n n "
	caught := "NullReferences r r n X r r " + strings.Repeat("Touch ", 6) + "NullReferences c c r r n n "
	peeked := "n X r r Peek NullReferences c c r r n n "
	for _, stack := range []string{nested, thrown, touched, caught, peeked} {
		if !whole(stack) {
			t.Errorf("not taken: %s", stack)
		}
		words := strings.Fields(stack)
		for i, w := range words {
			if w != "d" && w != "Down" && w != "Fall" && w != "Touch" {
				continue
			}
			if without := strings.Join(slices.Delete(slices.Clone(words), i, i+1), " ") + " "; whole(without) {
				t.Errorf("not missed: %s, word %d", w, i)
			}
		}
	}
}
