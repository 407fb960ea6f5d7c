package options

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// CLSID is the class id of the profiler.
const CLSID = "{5EEDA1C0-5EED-4A1C-A5EE-D5EED5EED001}"

// Variables of ours in the command's environment.
const (
	EnvSocket     = "SEEDWALK_SOCKET"
	EnvRate       = "SEEDWALK_RATE"
	EnvRaw        = "SEEDWALK_RAW"
	EnvStackBytes = "SEEDWALK_STACK_BYTES"
	EnvBeside     = "SEEDWALK_BESIDE"  // set if another profiler is the main one
	EnvEvents     = "SEEDWALK_EVENTS"  // on Windows: the section for the runtime's events
	EnvRefused    = "SEEDWALK_REFUSED" // a file to make by a profiler that has printed why it does not work
)

// Prefixes of the names of the runtime's settings. COMPlus_ is the old name of DOTNET_.
// Settings of profilers may also begin with CORECLR_.
var (
	profilerPrefixes = []string{"CORECLR_", "DOTNET_", "COMPlus_"}
	configPrefixes   = []string{"DOTNET_", "COMPlus_"}
)

// profilerSuffixes choose a profiler. The ones with an architecture win over
// PROFILER_PATH, so they must not be left over from something else.
var profilerSuffixes = []string{"ENABLE_PROFILING", "PROFILER", "PROFILER_PATH",
	"PROFILER_PATH_32", "PROFILER_PATH_64",
	"PROFILER_PATH_ARM32", "PROFILER_PATH_ARM64"}

// environ is an ordered environment in which later settings win.
type environ []string

func (e environ) get(key string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(e[i], "="); spelled(k) == spelled(key) {
			return v
		}
	}
	return ""
}

// spelled returns the same text for all names of one variable: on Windows, case is
// ignored.
func spelled(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func (e environ) without(keys ...string) environ {
	drop := make(map[string]bool, len(keys))
	for _, k := range keys {
		drop[spelled(k)] = true
	}
	out := make(environ, 0, len(e)+8)
	for _, kv := range e {
		if k, _, _ := strings.Cut(kv, "="); !drop[spelled(k)] {
			out = append(out, kv)
		}
	}
	return out
}

// enableBeside and listBeside switch on profilers that run beside the main one as
// notification profilers (.NET 6 and later; clrconfignames.h). The list is
// PATH={CLSID};PATH={CLSID}; and the last semicolon is required. A list with an
// architecture in its name wins.
const (
	enableBeside = "CORECLR_ENABLE_NOTIFICATION_PROFILERS"
	listBeside   = "CORECLR_NOTIFICATION_PROFILERS"
)

var listsBeside = []string{listBeside, listBeside + "_64", listBeside + "_ARM64"}

// AlreadyRecording returns a refusal if env already switches on our profiler.
func AlreadyRecording(env []string) *Refusal {
	e := environ(env)
	ours := strings.EqualFold(e.mainProfiler().id, CLSID)
	for _, name := range listsBeside {
		ours = ours || e.besides() && strings.Contains(strings.ToUpper(e.get(name)), CLSID)
	}
	if !ours {
		return nil
	}
	return Refuse(EnvSocket+"="+e.get(EnvSocket), "seedwalk is already recording here",
		"one recording is enough: processes that a recorded command starts are recorded with it")
}

// OtherProfiler names the profiler that env switches on, as it is set there; "" if
// it switches on none. Ours runs beside it.
func OtherProfiler(env []string) string {
	p := environ(env).mainProfiler()
	if p.id == "" && p.path == "" {
		return ""
	}
	return strings.TrimSpace(p.prefix + "PROFILER=" + p.id + " " + p.path)
}

// setting is a profiler as the environment names it.
type setting struct{ prefix, id, path string }

// mainProfiler returns the profiler that the CLR would load as the main one.
func (e environ) mainProfiler() setting {
	for _, p := range profilerPrefixes {
		if !isOn(e.get(p + "ENABLE_PROFILING")) {
			continue
		}
		id, path := e.get(p+"PROFILER"), e.get(p+"PROFILER_PATH")
		if id != "" || path != "" {
			return setting{p, id, path}
		}
	}
	return setting{}
}

// besides reports whether the CLR reads the list of profilers beside the main one.
func (e environ) besides() bool { return isOn(e.get(enableBeside)) }

// beside adds a profiler to those that run beside the main one.
func (e environ) beside(path string) environ {
	entry := path + "=" + CLSID + ";"
	prev := map[string]string{listBeside: ""}
	for _, name := range listsBeside {
		if list := e.get(name); list != "" && e.besides() {
			prev[name] = strings.TrimSuffix(list, ";") + ";"
		}
	}
	e = e.without(append([]string{enableBeside}, listsBeside...)...)
	e = append(e, enableBeside+"=1")
	for _, name := range listsBeside {
		if list, ok := prev[name]; ok {
			e = append(e, name+"="+list+entry)
		}
	}
	return e
}

// FrameworkProfiler reports in one line that a profiler of the .NET Framework is
// switched on, which does not affect the recording; "" if there is no such profiler.
func FrameworkProfiler(env []string) string {
	e := environ(env)
	if !isOn(e.get("COR_ENABLE_PROFILING")) || e.get("COR_PROFILER") == "" {
		return ""
	}
	return "COR_PROFILER=" + e.get("COR_PROFILER") +
		" is a profiler for the .NET Framework; it does not affect this recording"
}

// Blockers returns one line for every variable of env that keeps the CLR from
// loading any profiler.
func Blockers(env []string) []string {
	var lines []string
	e := environ(env)
	for _, p := range configPrefixes {
		for _, name := range []string{"EnableDiagnostics", "EnableDiagnostics_Profiler"} {
			if v := e.get(p + name); v != "" && !isOn(v) {
				lines = append(lines, fmt.Sprintf("%s%s=%s is set: the CLR loads no profiler; unset it",
					p, name, v))
			}
		}
	}
	return lines
}

// isOn reads a switch as the CLR does: a hexadecimal number that is not 0.
func isOn(v string) bool {
	v = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(v)), "0x")
	n, err := strconv.ParseUint(v, 16, 64)
	return err == nil && n != 0
}

// richDebugInfo makes the runtime keep which methods were inlined where (clrconfigvalues.h).
const richDebugInfo = "RichDebugInfo"

// ChildEnviron returns the command's environment: opt.Env, with our profiler as the main
// one, or beside the one that is set. If the tool samples from outside without a library
// and events, it adds no profiler.
func ChildEnviron(opt *Options, socket string) environ {
	e := environ(opt.Env)
	if opt.Inlines {
		e = append(e.without("DOTNET_"+richDebugInfo, "COMPlus_"+richDebugInfo), "DOTNET_"+richDebugInfo+"=1")
	}
	if opt.Mode == ModeProbe && !NeedsLibrary && opt.section == "" {
		return e
	}
	e = e.without(EnvSocket, EnvRate, EnvRaw, EnvStackBytes, EnvBeside, EnvRefused, EnvEvents)
	if OtherProfiler(opt.Env) != "" {
		e = append(e.beside(opt.Profiler), EnvBeside+"=1")
	} else {
		e = e.main(opt.Profiler)
	}
	if opt.section != "" { // copies of events, and no sampler
		return append(e, EnvEvents+"="+opt.section)
	}
	e = append(e, EnvSocket+"="+socket, EnvRate+"="+strconv.FormatFloat(opt.Rate, 'g', -1, 64))
	if opt.Raw != "" {
		e = append(e, EnvRaw+"="+opt.Raw)
	}
	if opt.StackBytes > 0 {
		e = append(e, EnvStackBytes+"="+strconv.Itoa(opt.StackBytes))
	}
	return e
}

// main sets our profiler as the main one. It removes the settings of a profiler that is switched off.
func (e environ) main(path string) environ {
	var drop []string
	for _, p := range profilerPrefixes {
		for _, s := range profilerSuffixes {
			drop = append(drop, p+s)
		}
	}
	return append(e.without(drop...), "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER="+CLSID,
		"CORECLR_PROFILER_PATH="+path)
}
