package e2e

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var (
	copiedStacks = flag.Int("copies", 2000, "how many stacks of the client TestCopies judges on each runtime")
	nowStacks    = flag.Int("now", 500, "how many of the in-process library, which are walked at once too")
	copyRate     = flag.Int("copy-rate", 5000, "how many stacks a second TestCopyRate copies")
	copySeconds  = flag.Int("copy-seconds", 3, "how long TestCopyRate copies")
)

// A program copies stacks at a given rate. Each copy arrives, or is counted as one without room. How many can
// arrive in a second depends on the machine: make bench-copies measures it, beside the in-process library.
func TestCopyRate(t *testing.T) {
	dir := tempdir.New(t)
	t.Setenv("SEEDWALK_ENGINE", tool(t))
	kinds := []string{"libseedwalk_client.a"}
	if *copyRate >= 100_000 {
		kinds = append(kinds, "libseedwalk.a")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			library := vendor(t, filepath.Join("capi", "testdata", "copies.cpp"), kind)
			out := filepath.Join(dir, "rate")
			const unit, starting = 4400, 2 // allocations of a unit of the program's work; seconds
			amount := *copyRate*(*copySeconds+starting)/unit + 1
			env := profiled(library, "COPIES_OUT="+out, fmt.Sprint("COPIES_RATE=", *copyRate))
			run(t, 10*time.Minute, env, on(t, needs.Net9, "Cost", "allocate", fmt.Sprint(amount))...).ok(t)
			text := readFile(t, out)
			var whole, arrived, asked, full, refused int
			var seconds float64
			_, err := fmt.Sscanf(text, "allocation %d of %d", &whole, &arrived)
			must.Do(t, err)
			_, after, _ := strings.Cut(text, "\nrate ")
			_, err = fmt.Sscanf(after, "%d asked %d full %d refused %f", &asked, &full, &refused, &seconds)
			must.Equal(t, err, nil, "%s", text)
			perSecond := func(n int) float64 { return float64(n) / seconds }
			fmt.Printf("%s: %.0f copies a second: %.0f stacks a second arrived, %d of %d are complete; no room for %d\n",
				t.Name(), perSecond(asked), perSecond(arrived), whole, arrived, full)
			lost := asked - full - arrived
			expect.True(t, lost >= 0 && lost <= asked/100 && arrived != 0 && whole == arrived && refused == 0,
				"%d copies, %d without room, %d refused, %d arrived, %d complete", asked, full, refused,
				arrived, whole)
		})
	}
}

// A thread that copies its stack in a callback (allocation, exception, class load, compilation) copies all of
// it: the stack agrees with the thread's own record.
func TestCopies(t *testing.T) {
	dir := tempdir.New(t)
	library := vendor(t, filepath.Join("capi", "testdata", "copies.cpp"), "libseedwalk.a")
	client := vendor(t, filepath.Join("capi", "testdata", "copies.cpp"), "libseedwalk_client.a")
	t.Setenv("SEEDWALK_ENGINE", tool(t))
	eachRuntime(t, func(t *testing.T, runtime string) {
		t.Run("client", func(t *testing.T) {
			copiesTruth(t, tempdir.New(t), client, on(t, runtime, "Truth"), *copiedStacks)
		})
		t.Run("now", func(t *testing.T) { atOnce(t, tempdir.New(t), library, on(t, runtime, "Truth")) })
	})
	t.Run("places", func(t *testing.T) { places(t, dir, library) })
}

// atOnce walks a thread's own stack in a callback, by the low-level calls. It gives the same stack as the
// copy, which is compared as usual.
func atOnce(t *testing.T, dir, library string, app []string) {
	kinds := copiesTruth(t, dir, library, app, *nowStacks, "COPIES_NOW=1")
	for _, k := range callbackKinds {
		same, all := kinds["now-"+k], kinds["now-"+k+" all"]
		expect.True(t, same != 0 && same == all,
			"%d of %d stacks walked at once in callbacks of kind %s are those of the copies", same, all, k)
	}
	expect.True(t, kinds["now-gaps"] == 0, "%d stacks walked at once have a gap", kinds["now-gaps"])
}

var callbackKinds = []string{"allocation", "exception", "class-load", "jit"}

func copiesTruth(t *testing.T, dir, library string, app []string, want int, env ...string) map[string]int {
	c := newChecker(t)
	c.want, c.first, c.last = want, 1, 0 // no scenario must occur
	out, kinds := filepath.Join(dir, "out"), map[string]int{}
	vendorTruth(t, c, dir, profiled(library, append(env, "COPIES_OUT="+out)...), app,
		func(int) { countKinds(t, out, kinds) })
	fmt.Printf("%s: %v\n", t.Name(), kinds)
	for _, k := range callbackKinds {
		expect.True(t, kinds[k] != 0, "no stack of a callback of kind %s", k)
	}
	if named, all := kinds["native"], kinds["native all"]; named == 0 || named != all {
		t.Errorf("%d of %d stacks of the first thread have the name and the build id of a function of libc", named, all)
	}
	return kinds
}

func countKinds(t *testing.T, out string, kinds map[string]int) {
	t.Helper()
	for l := range strings.Lines(readFile(t, out)) {
		var name string
		var complete, all int
		if n, _ := fmt.Sscanf(l, "%s %d of %d", &name, &complete, &all); n >= 2 {
			kinds[name] += complete
			if n == 3 {
				kinds[name+" all"] += all
			}
		}
	}
}

// places compares the managed frames of exceptions' stacks with Environment.StackTrace at the same places.
func places(t *testing.T, dir, library string) {
	exe, out := compiled(t, "capi/testdata/Places.cs"), filepath.Join(dir, "thrown")
	const times = 1000
	r := run(t, 2*time.Minute, profiled(library, "COPIES_THROWN="+out),
		hosted(t, runtime9(t), exe, fmt.Sprint(times))...)
	must.True(t, r.code == 42 && r.stderr == "", "%d\n%s%s", r.code, r.stdout, r.stderr)
	said := map[string]int{} // how often the runtime reported each stack
	for l := range strings.Lines(r.stdout) {
		said[strings.TrimSpace(l)]++
	}
	same, other := 0, 0
	for l := range strings.Lines(readFile(t, out)) {
		stack := ours(l)
		if said[stack] > 0 {
			said[stack]--
			same++
		} else if other++; other <= 3 {
			t.Errorf("a stack that Environment.StackTrace did not give:\n%s", stack)
		}
	}
	fmt.Printf("%s: %d stacks of exceptions as Environment.StackTrace gives them, %d others, %d kinds\n",
		t.Name(), same, other, len(said))
	if same < times/8 { // a busy machine drops copies
		t.Errorf("%d stacks of %d throws", same, 4*times)
	}
}

// ours keeps the methods of Places.cs, as Environment.StackTrace writes them.
func ours(line string) string {
	var out []string
	for _, m := range strings.Split(strings.TrimSpace(line), ";") {
		if strings.HasPrefix(m, "Places") {
			out = append(out, strings.ReplaceAll(m, "+", "."))
		}
	}
	return strings.Join(out, ";")
}

// keeping starts a program without a helper, by a command, and waits until its copies are in a file.
// It returns what the program says of its stacks.
func keeping(t *testing.T, by ...string) (p *process, file string, said []string) {
	t.Helper()
	dir := tempdir.New(t)
	library := vendor(t, filepath.Join("capi", "testdata", "copies.cpp"), "libseedwalk_client.a")
	file = filepath.Join(dir, "copies")
	env := profiled(library, "SEEDWALK_ENGINE="+filepath.Join(dir, "none"), "COPIES_KEEP="+file,
		"MALLOC_ARENA_MAX=1")
	argv := hosted(t, runtime9(t), compiled(t, "capi/testdata/Places.cs"), "100", "wait")
	p = startIn(t, env, append(by, argv...)...)
	return p, file, p.until("done")
}

// Without a helper, the client library writes copies of stacks to a file. The tool walks these copies with
// the memory of the process or of its core. Stacks of exceptions equal those of Environment.StackTrace at the
// same places. The tool refuses another process and a damaged file, and says why.
func TestClientKept(t *testing.T) {
	p, file, said := keeping(t)
	dir := filepath.Dir(file)
	t.Run("process", func(t *testing.T) { keptPlaces(t, said, "--copies", file, p.id) })
	core := coreOf(t, p.id, "full")
	t.Run("core", func(t *testing.T) { keptPlaces(t, said, "--copies", file, "--core", core) })
	t.Run("text", func(t *testing.T) {
		r := seedwalk(t, "stack", "--copies", file, p.id)
		r.ends(t, 1, r.stdout, " tag 2")
		expect.Contains(t, r.stderr, "was full: ")
	})
	t.Run("thread", func(t *testing.T) {
		l := stacks(t, "--copies", file, p.id)
		id := fmt.Sprint(l.Threads[0].TID)
		r := seedwalk(t, "stack", "--copies", file, "--thread", id+",1", p.id)
		expect.True(t, strings.Contains(r.stdout, "thread "+id+" tag") &&
			strings.Contains(r.stderr, "no copy of thread 1\n") &&
			!strings.Contains(r.stderr, "of thread "+id) && r.code == 1,
			"exit code %d\n%.2000s%s", r.code, r.stdout, r.stderr)
	})
	t.Run("refused", func(t *testing.T) { keptRefused(t, dir, file, core, p) })
	p.say("")
	expect.True(t, p.wait() == 42 && p.errs.String() == "",
		"the program ended with %v and said %q", p.err, p.errs.String())
}

// A process in a container has other numbers in its copies than here. The threads are shown with the numbers
// that they have here. A core that was written here fits, although its process has another number.
func TestClientKeptContained(t *testing.T) {
	unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 || exec.Command(unshare[0], append(unshare[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: no namespaces can be made here (they need root and unshare)")
	}
	p, file, said := keeping(t, unshare...)
	pid := child(t, p, func(int) bool { return true })
	l := stacks(t, "--copies", file, fmt.Sprint(pid))
	for i := range l.Threads {
		_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, l.Threads[i].TID))
		must.Do(t, err)
	}
	id := fmt.Sprint(l.Threads[0].TID)
	keptPlaces(t, said, "--copies", file, "--thread", id, fmt.Sprint(pid))
	keptPlaces(t, said, "--copies", file, "--core", coreOf(t, fmt.Sprint(pid), "full"))
}

// keptRefused checks that the tool refuses changed files, and files of another process.
func keptRefused(t *testing.T, dir, file, core string, p *process) {
	b := []byte(readFile(t, file))
	le, changed := binary.LittleEndian, 0
	// with writes a file that differs in the word at an offset, and returns its name.
	with := func(at uintptr, word uint64) string {
		c := slices.Clone(b)
		le.PutUint64(c[at:], word)
		changed++
		name := filepath.Join(dir, fmt.Sprint("changed-", changed))
		must.Do(t, os.WriteFile(name, c, 0o600))
		return name
	}
	torn := filepath.Join(dir, "torn")
	must.Do(t, os.WriteFile(torn, []byte("no copies"), 0o600))
	numbers := le.Uint64(b[probe.KeptPID:]) // with another field
	stack := le.Uint64(b[probe.KeptStack:])
	arch := le.Uint64(b[probe.KeptArch:]) ^ uint64(context.ArchAMD64^context.ArchARM64)
	another := fmt.Sprint("offset 12: the copies are of process ", p.pid^1, ", not ", p.pid)
	outer := with(probe.KeptPID, numbers^1) // of a core that was written outside of the container
	if l := stacks(t, "--copies", outer, "--core", core); len(l.Threads) < 50 {
		t.Errorf("%d copies of a core whose process has another number", len(l.Threads))
	}
	noStack := filepath.Join(dir, "no-stack")
	c := []byte(readFile(t, outer))
	le.PutUint64(c[probe.KeptStack:], 0)
	must.Do(t, os.WriteFile(noStack, c, 0o600))
	noFirst, foreign := with(probe.KeptStack, stack+1<<40), with(probe.KeptArch, arch)
	const arm = "offset 372: the copies are of ARM64, the process is of x86-64"
	for want, args := range map[string][]string{
		another:            {noStack, "--core", core},
		another + ": name": {outer, p.id},
		"offset 40: process " + p.id + " started after the copies": {with(probe.KeptOpened, 1), p.id},
		"offset 360: the copies are of a process with a stack at":  {noFirst, p.id},
		"offset 360: the copies are of a process with a stack":     {noFirst, "--core", core},
		arm:            {foreign, p.id},
		arm + ": name": {foreign, "--core", core},
		"torn: offset 9: the file ends within its header": {torn, p.id},
		"none: no such file":                              {filepath.Join(dir, "none"), p.id},
	} {
		r := seedwalk(t, append([]string{"stack", "--copies"}, args...)...)
		expect.True(t, r.code == 3 && r.stdout == "" && strings.Contains(r.stderr, want),
			"exit code %d, %q %q, want %q", r.code, r.stdout, r.stderr, want)
	}
}

// keptPlaces compares the walked copies with what the program said of its stacks.
func keptPlaces(t *testing.T, said []string, args ...string) {
	l := stacks(t, args...)
	whole, thrown, other := 0, 0, map[string]bool{}
	for i := range l.Threads {
		th := &l.Threads[i]
		if th.Complete {
			whole++
		}
		if th.Copy == nil || th.Copy.Tag != 2 { // Exception
			continue
		}
		thrown++
		if stack := ours(strings.Join(th.managed(""), ";")); !slices.Contains(said, stack) {
			other[stack] = true
		}
	}
	fmt.Printf("%s: %d of %d copies complete, %d of exceptions, %d that the program did not say\n", t.Name(),
		whole, len(l.Threads), thrown, len(other))
	expect.True(t, thrown >= 50 && len(other) == 0 && whole*1000 >= len(l.Threads)*leastWhole,
		"problems %v; not said: %v", l.Problems, other)
}
