package record

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// CLSID is the class id the profiler answers to.
const CLSID = "{5EEDA1C0-5EED-4A1C-A5EE-D5EED5EED001}"

// Variables of ours in the command's environment.
const (
	EnvSocket     = "SEEDWALK_SOCKET"
	EnvRate       = "SEEDWALK_RATE"
	EnvRaw        = "SEEDWALK_RAW"
	EnvStackBytes = "SEEDWALK_STACK_BYTES"
	EnvRefused    = "SEEDWALK_REFUSED" // a file to make by a profiler that has told the user why it does not work
)

// prefixes under which runtimes look for their settings: COMPlus_ is the old
// name of DOTNET_; profiler settings have their own, without underscore rules.
var (
	profilerPrefixes = []string{"CORECLR_", "DOTNET_", "COMPlus_"}
	configPrefixes   = []string{"DOTNET_", "COMPlus_"}
)

// profilerSuffixes choose a profiler. The ones with an architecture win over
// PROFILER_PATH, so they must not be left over from something else.
var profilerSuffixes = []string{"ENABLE_PROFILING", "PROFILER", "PROFILER_PATH", "PROFILER_PATH_32", "PROFILER_PATH_64",
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

// spelled makes names that the system takes for one the same: on Windows, case
// does not count.
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

// OtherProfiler returns a refusal if env already switches on a profiler: the
// CLR loads only one.
func OtherProfiler(env []string) *Refusal {
	e := environ(env)
	for _, p := range profilerPrefixes {
		if !isOn(e.get(p + "ENABLE_PROFILING")) {
			continue
		}
		id, path := e.get(p+"PROFILER"), e.get(p+"PROFILER_PATH")
		if id == "" && path == "" {
			continue
		}
		if strings.EqualFold(id, CLSID) {
			return &Refusal{What: "seedwalk is already recording here", Where: EnvSocket + "=" + e.get(EnvSocket),
				Remedy: "one recording is enough: processes that a recorded command starts are recorded with it", Code: ExitRefused}
		}
		return &Refusal{What: "another profiler is set and the CLR loads only one", Where: strings.TrimSpace(p + "PROFILER=" + id + " " + path),
			Remedy: "unset " + p + "ENABLE_PROFILING for this command", Code: ExitRefused}
	}
	return nil
}

// FrameworkProfiler reports in one line that a profiler of the .NET Framework is
// switched on, which does not touch what is recorded; "" if none is.
func FrameworkProfiler(env []string) string {
	e := environ(env)
	if !isOn(e.get("COR_ENABLE_PROFILING")) || e.get("COR_PROFILER") == "" {
		return ""
	}
	return "COR_PROFILER=" + e.get("COR_PROFILER") + " is a profiler for the .NET Framework: it stands in nobody's way here"
}

// Blockers returns one line for every variable of env that keeps the CLR from
// loading any profiler.
func Blockers(env []string) []string {
	var lines []string
	e := environ(env)
	for _, p := range configPrefixes {
		for _, name := range []string{"EnableDiagnostics", "EnableDiagnostics_Profiler"} {
			if v := e.get(p + name); v != "" && !isOn(v) {
				lines = append(lines, fmt.Sprintf("%s%s=%s is set: the CLR loads no profiler; unset it", p, name, v))
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

// childEnviron is the command's environment: what was there, less anything
// that would choose another profiler, plus ours.
func childEnviron(opt *Options, socket string) environ {
	var drop []string
	for _, p := range profilerPrefixes {
		for _, s := range profilerSuffixes {
			drop = append(drop, p+s)
		}
	}
	drop = append(drop, EnvSocket, EnvRate, EnvRaw, EnvStackBytes, EnvRefused)
	if opt.Mode == ModeProbe && !needsLibrary {
		return environ(opt.Env)
	}
	e := environ(opt.Env).without(drop...)
	e = append(e, "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER="+CLSID, "CORECLR_PROFILER_PATH="+opt.Profiler,
		EnvSocket+"="+socket, EnvRate+"="+strconv.FormatFloat(opt.Rate, 'g', -1, 64))
	if opt.Raw != "" {
		e = append(e, EnvRaw+"="+opt.Raw)
	}
	if opt.StackBytes > 0 {
		e = append(e, EnvStackBytes+"="+strconv.Itoa(opt.StackBytes))
	}
	return e
}
