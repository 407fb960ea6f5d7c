package export

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// otlpReader builds the reader by OpenTelemetry's own types. It is a module of its own.
func otlpReader(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "read")
	cmd := exec.Command("go", "build", "-mod=readonly", "-o", bin, "./read")
	cmd.Dir = filepath.Join("otlp", "testdata", "oracle")
	if out, err := cmd.CombinedOutput(); strings.Contains(string(out), "dial tcp") ||
		strings.Contains(string(out), "module lookup disabled") {
		t.Skipf("SKIPPED-CHECK: the modules of OpenTelemetry could not be had: %s", out)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

func readOTLP(t *testing.T, bin string, write func(io.Writer, *Profile) error,
	p *Profile, flags ...string) string {
	t.Helper()
	cmd := exec.Command(bin, append(flags, "-strict")...)
	cmd.Stdin = bytes.NewReader(written(t, write, p))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return out.String()
}

// otlpStacks returns the expected samples of one metric, one line each.
func otlpStacks(p *Profile, at int) (out []string) {
	for i := range p.Stacks {
		s := &p.Stacks[i]
		value := valuesOf(s)[at]
		if value == 0 {
			continue
		}
		var frames []string
		if s.Type != "" {
			frames = append(frames, otlpFrame(p, &Frame{Name: s.Type, ModuleIndex: -1, Class: ClassType}))
		}
		for _, k := range s.Frames {
			f := p.Frames[k]
			frames = append(frames, otlpFrame(p, &f))
		}
		if reason, missing := unmarkedGap(p, s); missing {
			frames = append(frames, otlpFrame(p,
				&Frame{Name: clean(reason), ModuleIndex: -1, Class: ClassGap}))
		}
		out = append(out, fmt.Sprintf("%d %s", value, strings.Join(frames, "; ")))
	}
	return out
}

func otlpFrame(p *Profile, f *Frame) string {
	s := symbolOf(f)
	text := fmt.Sprintf("%#x", f.Addr)
	if !f.Unnamed() || f.Doubtful {
		file := clean(f.File)
		if file == "" {
			file = s.module
		}
		text += fmt.Sprintf(" %q %q:%d", s.label(), file, f.Line)
	}
	if f.ModuleIndex >= 0 {
		m := p.Modules[f.ModuleIndex]
		text += fmt.Sprintf(" in %q", clean(m.Path))
	}
	return text + " " + s.class.String()
}

// shortened converts a line of the reader to the form of otlpStacks.
func shortened(line string) string {
	head, rest, _ := strings.Cut(strings.TrimPrefix(line, "sample ["), "]")
	var sum int64
	for _, v := range strings.Fields(head) {
		var n int64
		fmt.Sscan(v, &n)
		sum += n
	}
	frames := strings.Split(strings.SplitN(rest, " | ", 3)[2], "; ")
	for i, f := range frames {
		_, class, _ := strings.Cut(f, `seedwalk.frame.class="`)
		class, _, _ = strings.Cut(class, `"`)
		f, in, hasModule := strings.Cut(f, " in ")
		f, _, _ = strings.Cut(f, " profile.frame.type")
		f, _, _ = strings.Cut(f, " seedwalk.frame")
		if hasModule {
			f += fmt.Sprintf(" in %q", strings.Split(in, `"`)[1])
		}
		frames[i] = f + " " + class
	}
	return fmt.Sprintf("%d %s", sum, strings.Join(frames, "; "))
}

// OpenTelemetry's own types read both forms alike, and find every frame of every stack with
// its value, for each metric.
func TestOTLP(t *testing.T) {
	bin := otlpReader(t)
	for name, p := range map[string]*Profile{"demo": handMade(), "accounted": accounted(),
		"events": withEvents(), "timed": timed(), "large": large(300, 40)} {
		text := readOTLP(t, bin, WriteOTLP, p)
		cmptest.Same(t, text, readOTLP(t, bin, WriteOTLPJSON, p, "-json"),
			"%s: JSON has something else", name)
		got := map[string][]string{}
		var order []string
		for _, line := range strings.Split(text, "\n") {
			switch fields := strings.Fields(line); {
			case strings.HasPrefix(line, "profile "):
				order = append(order, fields[1])
			case strings.HasPrefix(line, "sample "):
				got[order[len(order)-1]] = append(got[order[len(order)-1]], shortened(line))
			}
		}
		for _, at := range p.shown() {
			cmptest.Same(t, otlpStacks(p, at), got[metrics[at].name], "%s %s", name, metrics[at].name)
			delete(got, metrics[at].name)
		}
		expect.True(t, len(got) == 0 && order[0] == metrics[p.defaultMetric()].name &&
			!strings.Contains(text, "no id"), "%s: profiles %v, beyond the metrics %v", name, order, got)
	}
	readOTLP(t, bin, WriteOTLP, &Profile{})
	readOTLP(t, bin, WriteOTLP, hostile())
}

// Attributes, times, and marks, by OpenTelemetry's names.
func TestOTLPAttributes(t *testing.T) {
	bin := otlpReader(t)
	p := timed()
	p.PID, p.Command, p.Runtime, p.Resource = 7, []string{"dotnet", "/app/shop.dll"}, ".NET 9.0.5",
		map[string]string{"container.id": "c0ffee"}
	text := readOTLP(t, bin, WriteOTLP, p)
	var times []string
	for i := range 25 {
		times = append(times, fmt.Sprint(p.Start.Add(time.Duration(i+1)*20*time.Millisecond).UnixNano()))
	}
	for _, want := range []string{
		`resource container.id="c0ffee" process.command_line="dotnet /app/shop.dll" process.pid="7" process.runtime.name=".NET" process.runtime.version="9.0.5" service.name="unknown_service:shop"`,
		"profile cpu nanoseconds 1000000000000 1000000000",
		"sample [" + strings.TrimSpace(strings.Repeat("10000000 ", 25)) + "] [" + strings.Join(times, " ") +
			`] | thread.id="1" thread.name="a" | 0x0 "f"`,
		`sample [600000000] [1000800000000]`} {
		expect.True(t, strings.Contains(text, want), "%q is not in\n%s", want, text)
	}
	demo := handMade()
	demo.Frames[6].Name = "libdemo.so+0x10"
	// The second is a time stamp.
	demo.Modules[1].BuildID, demo.Modules[2].BuildID = "240e6c61254e8312", "5fe1a2b3"
	text = readOTLP(t, bin, WriteOTLP, demo)
	for _, want := range []string{`seedwalk.gap="no-info"`,
		`process.executable.build_id.gnu="240e6c61254e8312"`,
		`seedwalk.frame.doubtful="true"`, `"[gap: no-info]"`,
		`0x7f0000100010 in "/app/libdemo.so" 0x7f0000100000-0x7f0000110000+0x1000 pprof.mapping.has_functions="false" seedwalk.image.stamp="5fe1a2b3" profile.frame.type="native"`,
		`profile.frame.type="dotnet" seedwalk.frame.class="stub"`} {
		expect.True(t, strings.Contains(text, want), "%q is not in\n%s", want, text)
	}
	if lines := strings.Split(text, "\n"); !slices.ContainsFunc(lines,
		func(l string) bool { return strings.HasPrefix(l, "sample [5000000000] [] |") }) {
		t.Error("a stack whose samples have no times lacks its sum")
	}
}

// Every class of code has one of OpenTelemetry's frame types; what is not code has none.
func TestFrameTypes(t *testing.T) {
	for c := range numClasses {
		notCode := c == ClassGap || c == ClassType || c == ClassUnsampled
		expect.Equal(t, otlpFrameTypes[c] == "", notCode, "class %v: frame type %q", c, otlpFrameTypes[c])
	}
}

// The samples of a stack divide its CPU time without a rest.
func TestOTLPDividesAll(t *testing.T) {
	p := &Profile{Frames: []Frame{{Name: "f", ModuleIndex: -1}}, Threads: []Thread{{1, "t"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 3, CPUNanos: 10, CPUCount: 3, Complete: true}}}
	for i := range int64(3) {
		p.Samples = append(p.Samples, Sample{At: 1000 + i, CPU: true})
	}
	d := must.Get(otlpData(p))(t)
	s := d.Resources[0].Scopes[0].Profiles[0].Samples
	must.True(t, len(s) == 1, "%+v", s)
	expect.Equal(t, fmt.Sprint(s[0].Values, len(s[0].Times)), "[3 3 4] 3")
}
