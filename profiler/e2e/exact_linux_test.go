package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exactTimes are CPU times in nanoseconds: of each method including its callees, and of the process.
type exactTimes struct {
	method  map[string]float64
	process float64
	pid     int
}

// parseExact reads what Exact.cs prints at its end.
func parseExact(text string) (e exactTimes, err error) {
	e.method = map[string]float64{}
	for line := range strings.Lines(text) {
		var v struct {
			Method  string
			CPU     float64 `json:"cpu_ns"`
			PID     int
			Process float64 `json:"process_cpu_ns"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return e, fmt.Errorf("%q: %w", line, err)
		}
		if v.Method != "" {
			e.method[v.Method] = v.CPU
		} else {
			e.process, e.pid = v.Process, v.PID
		}
	}
	if e.process == 0 {
		return e, fmt.Errorf("the program did not print its CPU time: %q", text)
	}
	return e, nil
}

// methods are the names, sorted.
func (e *exactTimes) methods() (names []string) {
	for name := range e.method {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inMethods is the time of all methods.
func (e *exactTimes) inMethods() (sum float64) {
	for _, v := range e.method {
		sum += v
	}
	return sum
}

// share is a method's part of the time of all methods.
func (e *exactTimes) share(method string) float64 {
	sum := e.inMethods()
	if sum == 0 {
		return 0
	}
	return e.method[method] / sum
}

// ofProcess is a method's part of the process's time.
func (e *exactTimes) ofProcess(method string) float64 {
	if e.process == 0 {
		return 0
	}
	return e.method[method] / e.process
}

// exactProfile is a profile's figures for the same methods.
type exactProfile struct {
	exactTimes
	// of those methods; of weighted samples, the number of equal ones that has the same error
	samples    float64
	clock      string             // that chose the samples; "" if unknown
	shown      float64            // the part of the process's time that is in the profile
	notSampled map[string]float64 // milliseconds of CPU time by cause
	stated     float64            // the process's time according to the profile: sampled and not sampled
}

// clock is the name of the worst clock that chose samples of CPU time.
func (p *jsonProfile) clock() (name string) {
	for _, k := range []string{clockPerf, clockRandom, clockTimer} {
		if p.Counters["clock_"+k] > 0 || p.Clock != nil && p.Clock.Name == k {
			name = k
		}
	}
	return name
}

// times adds up the CPU time of the methods and of everything.
func (p *jsonProfile) times(methods []string) (e exactProfile) {
	e.method = map[string]float64{}
	e.clock, e.notSampled = p.clock(), map[string]float64{}
	if c := p.Recording.CPU; c != nil {
		e.shown, e.stated = float64(c.Profile), float64(c.Profile)
		for _, n := range c.NotSampled {
			e.stated += float64(n.Nanos)
			e.notSampled[n.Cause] += math.Round(float64(n.Nanos) / 1e6)
		}
	}
	sum, squares := 0.0, 0.0
	for _, s := range p.Stacks {
		cpu := float64(s.CPU)
		e.process += cpu
		if s.CPUCount == 0 {
			continue
		}
		for _, f := range s.Frames {
			name := p.Frames[f].Name
			if name = name[strings.LastIndexByte(name, '.')+1:]; p.Frames[f].Class == "managed" &&
				slices.Contains(methods, name) {
				e.method[name] += cpu
				sum, squares = sum+cpu, squares+cpu*cpu/s.CPUCount
				break
			}
		}
	}
	if squares > 0 {
		e.samples = sum * sum / squares
	}
	return e
}

// perfTimes counts perf's samples in the code of the methods, which the runtime's map names.
func perfTimes(t *testing.T, file string, truth exactTimes, methods perfMap) (e exactProfile) {
	t.Helper()
	r := run(t, limitOfCommand, nil, "perf", "script", "-i", file, "--pid", fmt.Sprint(truth.pid), "-F", "ip")
	e.method = map[string]float64{}
	for _, field := range strings.Fields(r.stdout) {
		ip, err := strconv.ParseUint(field, 16, 64)
		if b := methods.find(ip); err == nil && b != nil && truth.method[b.name] > 0 {
			e.method[b.name]++
			e.samples++
		}
	}
	return e
}

// perfPermitted reports whether perf may sample this process, and all others.
func perfPermitted(t *testing.T) bool {
	argv := append(perfArguments(filepath.Join(t.TempDir(), "data")), "true")
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	return err == nil && !bytes.Contains(out, []byte("rror"))
}
