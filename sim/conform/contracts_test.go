package conform

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/api"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// arguments are those of methods that must not be called with zeros: p is room
// for an answer, m and h the two words of the event mask, c a callback, M a module.
var arguments = map[string]string{
	"GetEventMask": "p", "GetEventMask2": "pp", "SetEventMask": "m",
	"SetEventMask2": "mh", "GetCurrentThreadID": "p",
	"GetGenerationBounds": "0p", "GetObjectGeneration": "pp", "IsFrozenObject": "pp",
	"GetNotifiedExceptionClauseInfo": "p",
	"DoStackSnapshot":                "0c", "EnumThreads": "p", "GetRuntimeInformation": "pppppp0p",
	"GetLOHObjectSizeThreshold": "p",
	"EnumerateGCHeapObjects":    "c", "GetHandleFromThread": "0p", "GetThreadInfo": "0p",
	"EnumJITedFunctions": "p", "EnumJITedFunctions2": "p",
	"GetStringLayout": "ppp", "GetStringLayout2": "pp",
	"GetNonGCHeapBounds": "0p", "EnumerateNonGCObjects": "p",
	"EnumModules": "p", "EventPipeAddProviderToSession": "0p", "GetAppDomainsContainingModule": "M0p",
}

// header is contracts.h: the methods to ask, and the interfaces from the newest on.
func header(t *api.Tables) string {
	var b strings.Builder
	b.WriteString("static const struct method methods[] = {\n")
	for i := range t.Info {
		m := &t.Info[i]
		flags, skip := "0", 0
		if m.Native == "becomes" {
			flags = "BECOMES"
		}
		for _, p := range api.Places() {
			if m.Skip(p) != "" {
				skip |= 1 << p
			}
		}
		fmt.Fprintf(&b, "\t{%d, %d, %s, \"%s\", %#x}, /* %s */\n", m.Slot, m.Version, flags,
			arguments[m.Name], skip, m.Name)
	}
	b.WriteString("\t{0, 0, 0, \"\", 0}};\nstatic const struct interface interfaces[] = {\n")
	for v := t.Info[len(t.Info)-1].Version; v > 0; v-- {
		name := "ICorProfilerInfo"
		if v > 1 {
			name += strconv.Itoa(v)
		}
		fmt.Fprintf(&b, "\t{%d, {%s}},\n", v, api.CGUID(t.IIDs[name]))
	}
	b.WriteString("\t{0, {0}}};\n")
	return b.String()
}

// asked is what a CLR has answered.
type asked struct {
	version int
	last    string // the call that was begun last, and has not come back
	got     map[api.Place]map[int]uint32
}

func readAsked(t *testing.T, path string) *asked {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	a := &asked{got: map[api.Place]map[int]uint32{}}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		switch {
		case len(w) == 2 && w[0] == "version":
			a.version, _ = strconv.Atoi(w[1])
		case len(w) == 3 && w[0] == "ask":
			a.last = s.Text()
		case len(w) == 4 && w[0] == "got":
			place, _ := strconv.Atoi(w[1])
			slot, _ := strconv.Atoi(w[2])
			hr, err := strconv.ParseUint(w[3], 16, 32)
			if err != nil || place >= len(api.Places()) {
				t.Fatalf("%q", s.Text())
			}
			if a.got[api.Place(place)] == nil {
				a.got[api.Place(place)] = map[int]uint32{}
			}
			a.got[api.Place(place)][slot], a.last = uint32(hr), ""
		default:
			t.Fatalf("%q", s.Text())
		}
	}
	return a
}

// contracts holds the answers of a CLR against the table.
func contracts(t *testing.T, clr string, r api.Release, a *asked) {
	if a.last != "" {
		t.Errorf("no answer to: %s", a.last)
		return
	}
	for _, w := range disagreements(clr, r, a) {
		t.Errorf("%s: %s", clr, w)
	}
	methods, calls, explained := map[int]bool{}, 0, 0
	for _, p := range api.Places() {
		for slot := range a.got[p] {
			methods[slot] = true
		}
		for i := range api.Load().Info {
			if m := &api.Load().Info[i]; m.Differs(clr, p) != "" {
				explained++
				t.Logf("%s: %s from %s answers %08x: %s", clr, m.Name, p, a.got[p][m.Slot], m.Differs(clr, p))
			}
		}
		calls += len(a.got[p])
		fmt.Printf("contracts %-14s from %-10s %3d methods asked\n", clr, p, len(a.got[p]))
	}
	fmt.Printf("contracts %-14s %d of %d methods of ICorProfilerInfo to %d, %d calls, %d differences explained\n", clr, len(methods), len(api.Load().Info), a.version, calls, explained)
}

// disagreements are the methods whose answers are not the table's, and those that
// were not asked.
func disagreements(clr string, r api.Release, a *asked) (all []string) {
	for _, p := range api.Places() {
		for i := range api.Load().Info {
			m := &api.Load().Info[i]
			got, ok := a.got[p][m.Slot]
			due := m.Version <= a.version && m.Skip(p) == "" &&
				(a.version >= 10 || p != api.Owner && p != api.Other)
			if ok != due {
				all = append(all, fmt.Sprintf("%s from %s: asked: %v, to be asked: %v", m.Name, p, ok, due))
			} else if ok {
				if w := disagrees(m, clr, p, r, got); w != "" {
					all = append(all, w)
				}
			}
		}
	}
	return all
}

// disagrees reports how an answer differs from the table, "" if it does not or the
// table gives the reason.
func disagrees(m *api.Info, clr string, p api.Place, r api.Release, got uint32) string {
	want, answer, why := m.Expect(p, r), gateAnswer(got), m.Differs(clr, p)
	if want == api.Kills {
		want = api.LetIn // the arguments here do not kill
	}
	if want == api.LetIn && answer == api.NotHere {
		answer = api.LetIn // and what it was let in to is not implemented, or not for this target
	}
	switch {
	case answer == want && why != "":
		return fmt.Sprintf("%s from %s: the difference is gone, its explanation is not: %s", m.Name, p, why)
	case answer != want && why == "":
		return fmt.Sprintf("%s from %s answers %08x, the table has %q", m.Name, p, got, want)
	}
	return ""
}

func testdata(name string) string { return filepath.Join("testdata", name) }

// contractsLib builds the profiler in bin.
func contractsLib(t *testing.T, bin, lib string, argv ...string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(bin, "contracts.h"), []byte(header(api.Load())), 0o600))
	needs.Build(t, append(argv, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type",
		"-shared", "-I"+bin, "-o", lib)...)
}

var askProfiler = []string{"CORECLR_ENABLE_PROFILING=1",
	"CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}"}

// askContracts runs the program to its end and reads what was answered.
func askContracts(t *testing.T, cmd *exec.Cmd, dir string, env ...string) *asked {
	t.Helper()
	cmd.Env = append(append(os.Environ(), askProfiler...), env...)
	expect.Equal(t, finish(t, Run{Name: "contracts"}, cmd, dir), "")
	return readAsked(t, filepath.Join(dir, "answers"))
}

func TestContractsNet9Linux(t *testing.T) {
	needs.Command(t, "gcc", "mcs")
	runtime := needs.Runtime9(t)
	bin := t.TempDir()
	host, lib, app := filepath.Join(bin, "swhost"), filepath.Join(bin, "libcontracts.so"),
		filepath.Join(bin, "Contracts.exe")
	needs.Build(t, "gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", host, source("host.c"), "-ldl")
	contractsLib(t, bin, lib, "gcc", "-fPIC", testdata("contracts.c"), "-lpthread")
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-out:"+app, testdata("Contracts.cs"))
	a := askContracts(t, exec.Command(host, runtime, app), bin, "CORECLR_PROFILER_PATH="+lib,
		"CONTRACTS_OUT="+filepath.Join(bin, "answers"))
	contracts(t, "net9-linux", api.Net9, a)
}

func TestContractsNet10Linux(t *testing.T) {
	needs.Command(t, "gcc", "mcs")
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	program, lib := filepath.Join(bin, "contracts"), filepath.Join(bin, "libcontracts.so")
	contractsLib(t, bin, lib, "gcc", "-fPIC", testdata("contracts.c"), "-lpthread")
	needs.SingleFile(t, azmcp, "azmcp.dll", program, testdata("Contracts.cs"))
	a := askContracts(t, exec.Command(program), bin, "CORECLR_PROFILER_PATH="+lib, "LD_LIBRARY_PATH="+bin,
		"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "CONTRACTS_OUT="+filepath.Join(bin, "answers"))
	contracts(t, "net10-linux", api.Net10, a)
}

// windowsContracts builds the profiler for Windows, as contracts.dll in bin.
func windowsContracts(t *testing.T, bin string) (lib string) {
	t.Helper()
	lib = filepath.Join(bin, "contracts.dll")
	contractsLib(t, bin, lib, mingw, "-I"+source(""), testdata("contracts_windows.c"))
	return lib
}

func TestContractsCore22Windows(t *testing.T) {
	wine := needWine(t)
	needs.Command(t, "mcs")
	bin := t.TempDir()
	host, app := filepath.Join(bin, "swhost.exe"), filepath.Join(bin, "Contracts.exe")
	lib := windowsContracts(t, bin)
	needs.Build(t, mingw, "-O2", "-Wall", "-Wextra", "-Werror", "-o", host, source("host_windows.c"))
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-out:"+app, testdata("Contracts.cs"))
	runtime := filepath.Dir(needs.File(t, ".cache", "dotnet-2.2.2-win", "package", "shared",
		"Microsoft.NETCore.App", "2.2.2", "coreclr.dll"))
	a := askContracts(t, exec.Command(wine, "exec", host, winePath(runtime), winePath(app)), bin,
		"CORECLR_PROFILER_PATH="+winePath(lib), "CONTRACTS_OUT="+winePath(filepath.Join(bin, "answers")))
	contracts(t, "core22-windows", api.Core22, a)
}

func TestContractsNet10Windows(t *testing.T) {
	wine := needWine(t)
	needs.Command(t, "mcs")
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9-win", "package", "dist", "azmcp.exe")
	bin := t.TempDir()
	program := filepath.Join(bin, "Contracts.exe")
	lib := windowsContracts(t, bin)
	needs.SingleFile(t, azmcp, "azmcp.dll", program, testdata("Contracts.cs"))
	a := askContracts(t, exec.Command(wine, "exec", program), bin, "CORECLR_PROFILER_PATH="+winePath(lib),
		"CONTRACTS_OUT="+winePath(filepath.Join(bin, "answers")), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	contracts(t, "net10-windows", api.Net10, a)
}

// A wrong table must be seen: each gate is taken for another.
func TestContractsSeeDifferences(t *testing.T) {
	a := &asked{version: 15, got: map[api.Place]map[int]uint32{}}
	answers := map[api.Answer]uint32{api.LetIn: 0, api.Refused: 0x80131363, api.OnlyInit: 0x80131356,
		api.NotHere: 0x80004001, api.Kills: 0}
	for _, p := range api.Places() {
		a.got[p] = map[int]uint32{}
		for i := range api.Load().Info {
			if m := &api.Load().Info[i]; m.Skip(p) == "" {
				a.got[p][m.Slot] = answers[m.Expect(p, api.Net9)]
			}
		}
	}
	wrong := disagreements("net9-linux", api.Net9, a)
	expect.True(t, len(wrong) == 0, "an answer as the table has it: %q", wrong)
	for _, c := range []struct {
		name  string
		place api.Place
		slot  int
		hr    uint32
	}{
		{"sync let in", api.PInvoke, 12, 0}, {"async refused", api.PInvoke, 7, 0x80131363},
		{"triggers let in", api.NoTrigger, 66, 0},
		{"init let in", api.Triggers, 61, 0}, {"stub let in", api.Init, 27, 0},
		{"own rule let in", api.Triggers, 28, 0},
	} {
		was := a.got[c.place][c.slot]
		a.got[c.place][c.slot] = c.hr
		wrong := disagreements("net9-linux", api.Net9, a)
		expect.True(t, len(wrong) == 1, "%s: %q", c.name, wrong)
		a.got[c.place][c.slot] = was
	}
	delete(a.got[api.Init], 7)
	wrong = disagreements("net9-linux", api.Net9, a)
	expect.True(t, len(wrong) == 1, "a method that was not asked: %q", wrong)
}

// gateAnswer sorts an HRESULT into the answers that a gate alone can give.
func gateAnswer(hr uint32) api.Answer {
	switch hr {
	case 0x80131363:
		return api.Refused
	case 0x80131356:
		return api.OnlyInit
	case 0x8013136f:
		return api.NotAttached
	case 0x80004001:
		return api.NotHere
	}
	return api.LetIn
}
