package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/stack/raw"
)

// mixOn is Mix.cs on a .NET Core 2 for Windows.
func mixOn(runtime string) *windowsProgram {
	return &windowsProgram{
		name: ".NET Core " + runtime[strings.LastIndexByte(runtime, '/')+1:], says: "mix: 13 threads", class: "Mix.", threads: mixGrammar,
		letters: map[string]string{"mix.dll": "d", "coreclr.dll": "r", "kernelbase.dll": "X"},
		record: func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result) {
			return recordWindows(t, 4*time.Minute, env, append(flags, "--rate", "50"), runtime, "Mix.exe", fmt.Sprint(windowsRun))
		},
		command: func(t *testing.T) []string {
			return []string{"swhost.exe", need(t, runtime), need(t, "out", "windows", "Mix.exe"), samplerLength(fmt.Sprint(windowsRun))}
		},
	}
}

var mixGrammar = []grammar{
	{"Spin", of(`(Collatz ){0,2}`)},
	{"NativeSpin", of(`(d )?(s )?`)},
	{"NativeSleep", of(`(d )?(s )?`)},
	{"Stackalloc", of(`((d )?(s )?Grow )?`)},
	{"Nested", of(nested())},
	{"Allocate", of(``)},
	{"Jit", of(``)},
	{"Exceptions", of(`((Descend ([crnsX] )*)*(Exceptions ([crnsX] )+(Descend ([crnsX] )*){9})?)?`)},
	{"ThrowingRecursion", of(`((Fall|Fall2|FallToFinally|ThrowingRecursion) ([crnsX] )*)*`)},
	{"Contend", of(`(HoldTheLock )?`)},
	{"NullReferences", of(`(Peek |(Touch ){0,6}|NullReferences ([crnsX] )+(Peek |(Touch ){6}))`)},
	{"Sleeper", of(``)},
	{"Main", regexp.MustCompile(`^([rnscX] )*(\.cctor (r )+)?Main (r )+(n ){5}$`)},
	{runtimes, regexp.MustCompile(`^([rnscX] )+n n $`)},
}

// nested is the stack of Down(8): each level calls one frame of mix_down less, and its last calls the next
// level through a stub. The top level may be at any point.
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

// recursion describes faults in the frames of Fall and Touch that an exception was thrown over: it is thrown
// only at the bottom, 20 or 5 calls down.
func (x *shapes) recursion(words []string) string {
	thrown := false
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "X":
			thrown = true
		case (w == "Fall" || w == "Touch") && thrown:
			n := 0
			for ; words[i] == w; i++ { // a root is below
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

// mixMet requires stacks of every thread, of exceptions, and of the thread with null references.
func (x *shapes) mixMet(t *testing.T) {
	t.Helper()
	if f := x.faults; x.thrown == 0 || f.all == 0 || f.whole*100 < f.all*95 {
		t.Errorf("%d recursions under an exception; %d of %d stacks of the thread that raises null references are complete, want 95 %%", x.thrown, f.whole, f.all)
	}
}

// TestMixGrammar: a stack that lacks one of its frames is recognised.
func TestMixGrammar(t *testing.T) {
	nested := "Collatz Collatz Down "
	for depth := 1; depth <= 8; depth++ {
		nested += "s r " + strings.Repeat("d ", depth+1) + "s Down "
	}
	nested += "Nested c c r r n n "
	thrown := "n X r r " + strings.Repeat("Fall ", 21) + "ThrowingRecursion c c r r n n "
	whole := func(stack string) bool {
		_, why := newShapes(mixOn(core222)).wrong(strings.Fields(stack))
		return why == ""
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
