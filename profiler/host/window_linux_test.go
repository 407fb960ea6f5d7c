package host

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The C half of the suspended window is checked in compiled form: its object files are disassembled, and
// every function that they call must be in a list.

// window is the C code that runs while something is suspended, on one platform.
type window struct {
	name, cc, objdump string
	files             []string
	roots             []string // functions that run in it
	calls             []string // external functions that it may call
	pointers          []string // functions that may call through a pointer: the CLR's methods
}

var windows = []window{
	{"linux", "gcc", "objdump",
		[]string{"capture_linux.c", "threads.c", "threads_linux.c", "sampler_linux.c", "info.c"},
		[]string{"on_signal", "record", "sw_ask", "sw_await", "sw_snapshot", "sw_function_at",
			"sw_thread_alive", "sw_window_leave", "sw_wait_note", "sw_resume_runtime"},
		// The file with a silent thread's pending signals is read without stdio's locks; snprintf of a number
		// into a buffer takes none.
		[]string{"memcpy", "memset", "syscall", "getpid", "getuid", "sigaltstack", "__errno_location",
			"__libc_current_sigrtmin", "snprintf", "open", "open64", "read", "close", "strstr", "strtoull"},
		[]string{"sw_snapshot", "sw_function_at", "sw_function_from_ip", "sw_resume_runtime"}},
	{"windows", "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-objdump",
		[]string{"capture_windows.c", "threads.c", "threads_windows.c", "sampler_windows.c",
			"loader_windows.c", "held_windows.c", "watchdog_windows.c", "info.c"},
		[]string{"fault", "record", "sw_suspend", "sw_context", "sw_snapshot", "sw_function_at", "sw_resume",
			"sw_now_ns", "sw_watch_begin", "sw_watch_end"},
		[]string{"memcpy", "SuspendThread", "ResumeThread", "GetThreadContext", "GetExitCodeThread",
			"QueryPerformanceCounter", "QueryPerformanceFrequency"},
		[]string{"sw_snapshot", "sw_function_at", "sw_function_from_ip"}},
}

func TestWindowCalls(t *testing.T) {
	for _, w := range windows {
		t.Run(w.name, func(t *testing.T) {
			w.need(t)
			code := map[string]string{} // disassembly by file
			for _, f := range w.files {
				code[f] = w.compile(t, ".", f)
			}
			found := w.faults(code)
			for _, f := range found {
				t.Error(f)
			}
			if len(found) == 0 {
				w.mistakes(t, code)
			}
		})
	}
}

func (w *window) need(t *testing.T) {
	t.Helper()
	needs.Command(t, w.cc, w.objdump)
}

// mistakes adds forbidden calls to the window and expects each to be found.
func (w *window) mistakes(t *testing.T, sound map[string]string) {
	places := map[string]string{"linux": "\ncopy_stack(s);\n", "windows": "\nif (!GetThreadContext("}
	for name, code := range map[string]string{
		"a mutex":       map[string]string{"linux": "extern int pthread_mutex_lock(void *); pthread_mutex_lock(s);", "windows": "EnterCriticalSection((void *)s);"}[w.name],
		"an allocation": "extern void *malloc(size_t); *(void *volatile *)&s->stack = malloc(64);",
		"getenv":        "extern char *getenv(const char *); *(void *volatile *)&s->stack = getenv(\"PATH\");",
		"a log line":    "extern int puts(const char *); puts(\"sampling\");",
		"the loader": map[string]string{"linux": "extern void *dlsym(void *, const char *); *(void *volatile *)&s->stack = dlsym(0, \"x\");",
			"windows": "*(void *volatile *)&s->stack = (void *)GetModuleHandleA(\"x\");"}[w.name],
	} {
		dir := tempdir.New(t)
		all, _ := filepath.Glob("*.[ch]")
		for _, f := range all {
			b := must.Get(os.ReadFile(f))(t)
			text := regexp.MustCompile(`\n\t+`).ReplaceAllString(string(b), "\n")
			if at := places[w.name]; f == w.files[0] && strings.Contains(text, at) {
				text = strings.Replace(text, at, "\n"+code+at, 1)
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, f), []byte(text), 0o644))
		}
		code := maps.Clone(sound)
		code[w.files[0]] = w.compile(t, dir, w.files[0])
		found := w.faults(code)
		if len(found) == 0 {
			t.Errorf("%s in the window was not found", name)
			continue
		}
		fmt.Printf("%s, with %s in the window: %s\n", t.Name(), name, found[0])
	}
}

var (
	function = regexp.MustCompile(`^[0-9a-f]+ <([^>]+)>:`)
	target   = regexp.MustCompile(`\b(?:call|jmp)q?\s.*<([^>+]+)(\+0x[0-9a-f]+)?>`)
	reloc    = regexp.MustCompile(`R_X86_64_(?:PLT32|PC32|GOTPCRELX|REX_GOTPCRELX|GOTPCREL)\s+([\w.@]+)|IMAGE_REL_AMD64_REL32\s+([\w.]+)`)
	pointer  = regexp.MustCompile(`\b(?:call|jmp)q?\s+\*`)
)

// compile returns a file's machine code as text.
func (w *window) compile(t *testing.T, dir, file string) string {
	t.Helper()
	object := filepath.Join(tempdir.New(t), "o.o")
	run := func(name string, args ...string) string {
		return must.Run(t, exec.Command(name, args...))
	}
	run(w.cc, "-std=gnu11", "-O2", "-ffunction-sections", "-fno-optimize-sibling-calls", "-c", "-o",
		object, filepath.Join(dir, file))
	return run(w.objdump, "-dr", "--no-show-raw-insn", object)
}

// faults returns the calls of the window that are not in its lists.
func (w *window) faults(code map[string]string) []string {
	calls := map[string]map[string]bool{}
	for _, text := range code {
		graph(calls, text)
	}
	return w.reached(calls)
}

// graph adds the calls in text to calls, by caller; "*" is a call through a pointer.
func graph(calls map[string]map[string]bool, text string) {
	var in map[string]bool
	called := false // the last instruction was a call or jump
	for l := range strings.Lines(text) {
		if m := function.FindStringSubmatch(l); m != nil {
			in = map[string]bool{}
			calls[m[1]] = in
			continue
		}
		if m := reloc.FindStringSubmatch(l); m != nil {
			if name := strings.TrimPrefix(m[1]+m[2], "__imp_"); called && !strings.HasPrefix(name, ".") {
				in[strings.TrimPrefix(name, ".text.")] = true
				delete(in, "*")
			}
			continue
		}
		m := target.FindStringSubmatch(l)
		called = m != nil || pointer.MatchString(l)
		switch {
		case m != nil && m[2] == "":
			in[m[1]] = true
		case m == nil && called && !strings.Contains(l, "(%rip)"):
			in["*"] = true
		}
	}
}

// reached returns the mistakes among the functions that are reachable from the roots: an external
// function that is not listed, or a call through a pointer that is not allowed.
func (w *window) reached(calls map[string]map[string]bool) (found []string) {
	may, through := set(w.calls), set(w.pointers)
	seen, todo := map[string]bool{}, append([]string{}, w.roots...)
	for len(todo) > 0 {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[f] {
			continue
		}
		seen[f] = true
		called, ours := calls[f]
		switch {
		case !ours && !may[f]:
			found = append(found, f+" is called in the window")
		case called["*"] && !through[f]:
			found = append(found, f+" calls through a pointer in the window")
		}
		for c := range called {
			if c != "*" {
				todo = append(todo, c)
			}
		}
	}
	sort.Strings(found)
	return found
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}
