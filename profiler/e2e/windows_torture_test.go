package e2e

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/epilog"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

var tortureTime = flag.Duration("torture", 8*time.Second,
	"length of the torture of locks on Windows runtimes")

// tortured is a profiler for tests: the settings that select it.
type tortured struct{ env, flags []string }

const tortureEnv = "SEEDWALK_TORTURE"

// torture is the profiler that makes a mistake on purpose (profiler/torture_windows.c).
func torture(t *testing.T, mistake string) tortured {
	t.Helper()
	dll := need(t, "out", "windows", "seedwalk_profiler_torture.dll")
	return tortured{[]string{tortureEnv + "=" + mistake}, []string{"--profiler", dll}}
}

// Code that is only for the tests must not be in the product.
func TestWindowsProductHasNoMistakes(t *testing.T) {
	for _, c := range []struct {
		dll  string
		want bool
	}{{"seedwalk_profiler.dll", false}, {"seedwalk_profiler_torture.dll", true}} {
		expect.Equal(t, strings.Contains(readFile(t, need(t, "out", "windows", c.dll)), tortureEnv), c.want,
			"%s reads %s", c.dll, tortureEnv)
	}
}

// tortureKinds are the kinds of work of Torture.exe, by the method of each.
var tortureKinds = []string{"Torture.Heap", "Torture.Loader", "Torture.Environ", "Torture.Tables",
	"Torture.Collect", "Torture.Compile"}

// Threads that use the locks of heap, loader, environment, function tables and the CLR are sampled as fast as
// possible: the program ends as it does without a profiler.
func TestWindowsTorture(t *testing.T) {
	plain := run(t, time.Minute, []string{"SWHOST_LIMIT=40"},
		wine(t, "swhost.exe", need(t, core222), need(t, "out", "windows", "Torture.exe"), "3")...)
	must.True(t, plain.code == 7,
		"without a profiler: exit code %d, output %q\n%s", plain.code, plain.stdout, plain.stderr)
	samples, rd, res := recordWindows(t, *tortureTime+time.Minute, nil, []string{"--rate", "1000"}, core222,
		"Torture.exe", fmt.Sprint(tortureTime.Seconds()))
	t.Logf("%d samples in %v\n%s", len(samples), *tortureTime, res.stderr)
	must.True(t, res.code == plain.code && res.stdout == plain.stdout,
		"exit code %d, output %q; without a profiler %d, %q", res.code, res.stdout, plain.code, plain.stdout)
	want := int(5 * tortureTime.Seconds())
	expect.True(t, len(samples) >= want, "%d samples, want %d", len(samples), want)
	seen := map[string]int{}
	for _, s := range samples {
		for i := range s.Frames {
			seen[rd.Names()[s.Frames[i].Function]]++
		}
	}
	for _, k := range tortureKinds {
		expect.True(t, seen[k] != 0, "%s was never sampled", k)
	}
}

// tortureDeadlock is the exit code of the torture profiler if a call in the window did not return.
const tortureDeadlock = 99

// Each lock that must not be taken in the window is taken there: the same threads then stop the sampler for
// ever.
func TestWindowsTortureDeadlocks(t *testing.T) {
	for _, c := range []struct{ mistake, kind string }{
		{"heap", "heap"}, {"loader", "loader"}, {"environment", "environment"},
		{"lookup", "tables"}, {"threads", "loader"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 30*time.Second, p.env, append(p.flags, "--rate", "1000"),
				core222, "Torture.exe", "20", c.kind)
			said := lineWith(res.stderr, "torture: deadlock")
			expect.Figures(t, said != "" && res.code == tortureDeadlock,
				"exit code %d after %v: %s; output %q\n%s", res.code, res.took.Round(100*time.Millisecond),
				said, res.stdout, res.stderr)
		})
	}
	t.Run("none", func(t *testing.T) {
		p := torture(t, "none")
		var res result
		// A loaded machine may not do all kinds of work in a short run.
		for _, seconds := range []string{"3", "12", "24"} {
			res = runWindows(t, time.Minute, p.env,
				append(p.flags, "--rate", "1000"), core222, "Torture.exe", seconds)
			if !strings.Contains(res.stdout, "came out wrong: 0\r\n") {
				break
			}
		}
		expect.True(t, res.code == 7, "exit code %d, output %q\n%s", res.code, res.stdout, res.stderr)
	})
}

// A process whose sampler was ended while it had a thread suspended, as ExitProcess of that thread does,
// continues and ends: the tool resumes the thread. If the tool does not learn of it, the process hangs.
func TestWindowsSamplerEnded(t *testing.T) {
	for _, c := range []struct {
		mistake string
		code    int
		limit   time.Duration
	}{{"die", 7, time.Minute}, {"unseen", hungCode, 15 * time.Second}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			var res result
			// on a loaded machine no suspension may be hit in a short run
			for _, seconds := range []string{"3", "6", "12", "24"} {
				res = runWindows(t, c.limit, p.env, append(p.flags, "--rate", "1000"),
					core222, "Torture.exe", seconds)
				if lineWith(res.stderr, "torture: the sampler ends") != "" {
					break
				}
			}
			said := lineWith(res.stderr, "its sampler was ended")
			expect.Figures(t, res.code == c.code && (said != "") == (c.code == 7),
				"exit code %d after %v, want %d; it says %q, which only goes with 7; output %q\n%s", res.code,
				res.took.Round(100*time.Millisecond), c.code, said, res.stdout, res.stderr)
		})
	}
}

// lineWith is the first line of text that contains part, "" if none.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Differences between Wine 8 and us must have an explanation: a known fault of Wine, which package
// bench/wineunwind describes in detail, and a third implementation that agrees with us. They occur when a
// thread is stopped in an epilog, never in a caller.

// quirk is a step with different results.
type quirk struct {
	f     *pe.File
	rva   uint32
	exact bool
	fn    peamd64.RuntimeFunction
	info  peamd64.Info
	rest  epilog.Rest
}

func newQuirk(f *pe.File, rva uint32, exact bool, from *context.AMD64, mem *memory.Window) *quirk {
	q := &quirk{f: f, rva: rva, exact: exact}
	q.fn, _ = f.AMD64().Find(rva)
	q.info, _ = f.AMD64().Info(q.fn.Unwind)
	q.rest = epilog.Run(f, rva, from, mem)
	return q
}

func (q *quirk) leaves() bool { return q.rest.Leaves(q.f, q.fn, &q.info) }

func (q *quirk) ends() bool {
	return q.rest.End == epilog.Ret || q.rest.End == epilog.RetImm || q.leaves()
}

var quirks = []struct {
	name  string
	match func(q *quirk) bool
}{
	{"epilog inside the prolog",
		func(q *quirk) bool { return q.rva-q.fn.Begin < uint32(q.info.Prolog) && q.ends() }},
	{"tail jump", (*quirk).leaves},
	{"epilog of an entry without codes", func(q *quirk) bool { return q.info.Count == 0 && q.ends() }},
	{"bnd ret", func(q *quirk) bool { return q.rest.End == epilog.Ret && q.rest.BND }},
	{"ret imm16", func(q *quirk) bool { return q.rest.End == epilog.RetImm }},
}

// explain names the fault, "" if none explains our result.
func (q *quirk) explain(ours *context.AMD64) string {
	if !q.exact || q.info.Version != 1 || q.rest.End == epilog.None || row(&q.rest.Regs) != row(ours) {
		return ""
	}
	for i := range quirks {
		if quirks[i].match(q) {
			return quirks[i].name
		}
	}
	return ""
}

// TestWindowsQuirks: each fault explains its own step and no other, and none explains a wrong result of ours.
func TestWindowsQuirks(t *testing.T) {
	const pushRBX, late, nothing = "01 01 01 00 01 30 00 00", "01 09 01 00 01 30 00 00", "01 00 00 00"
	for _, c := range []struct {
		name, info, code string
		at               uint32
		want             string
	}{
		{"a return Wine knows", pushRBX, "53 90 5b c3", 2, ""},
		{"a jump out", pushRBX, "53 90 5b e9 00 01 00 00", 2, "tail jump"},
		{"a switch", pushRBX, "53 90 5b ff e0", 2, ""},
		{"a return in the prolog", late, "53 90 5b c3 90 90 90 90 90 90", 2, "epilog inside the prolog"},
		{"no codes", nothing, "48 83 c4 08 c3", 0, "epilog of an entry without codes"},
		{"bnd", pushRBX, "53 90 5b f2 c3", 2, "bnd ret"},
		{"arguments taken away", pushRBX, "53 90 5b c2 10 00", 2, "ret imm16"},
		{"the body", pushRBX, "53 90 5b c3", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := pictured(t, c.code, c.info)
			mem := memory.New(memory.Run{Addr: 0x8000, Data: make([]byte, 64)})
			from := context.AMD64{RIP: uint64(0x1000 + c.at), Known: context.AMD64All}
			from.GPR[context.RSP] = 0x8000
			ours := from
			amd64.StepPE(f.AMD64(), unwind.Instruction(uint64(0x1000+c.at)), &ours, mem)
			q := newQuirk(f, 0x1000+c.at, true, &from, mem)
			expect.Equal(t, q.explain(&ours), c.want, "explained by")
			for i := range nonvolatile {
				bent := ours
				bent.GPR[nonvolatile[i]] ^= 8
				expect.Equal(t, q.explain(&bent), "", "a wrong answer of ours is explained by")
			}
			q.exact = false
			expect.Equal(t, q.explain(&ours), "", "a caller is not in an epilog")
		})
	}
}

// pictured is an image of one function, at RVA 1000h.
func pictured(t *testing.T, code, info string) *pe.File {
	t.Helper()
	raw := func(s string) []byte {
		return must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
	}
	var entry []byte
	for _, v := range []uint32{0x1000, 0x1000 + uint32(len(raw(code))), 0x2000} {
		entry = binary.LittleEndian.AppendUint32(entry, v)
	}
	return pe.FromBlocks(pe.MachineAMD64, entry,
		[]pe.Block{{RVA: 0x1000, Data: raw(code)}, {RVA: 0x2000, Data: raw(info)}})
}
