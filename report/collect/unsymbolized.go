package collect

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
)

// DebugFiler is a Namer that knows the file which would name an image's code: its name
// (.gnu_debuglink), "" if the image does not say.
type DebugFiler interface {
	DebugFile(path, buildID string) string
}

// unsymbolizedShare is the share of frames without a name that is worth a line.
const unsymbolizedShare = 0.05

// unsymbolized returns a line with the share of all frames and of leaf frames without a name, and the file
// that would name most of them. A frame counts once per sample. It returns "" if few frames lack a name, or
// if no such file is known.
func unsymbolized(p *export.Profile, n Namer) string {
	filer, ok := n.(DebugFiler)
	if !ok {
		return ""
	}
	var all, without, leaves, leavesWithout int64
	modules, runtime := map[int32]int64{}, map[int32]bool{}
	for i := range p.Stacks {
		s := &p.Stacks[i]
		for k, f := range s.Frames {
			all += s.Count
			if k == 0 {
				leaves += s.Count
			}
			if frame := &p.Frames[f]; frame.Unnamed() {
				without += s.Count
				if k == 0 {
					leavesWithout += s.Count
				}
				modules[frame.ModuleIndex] += s.Count
				runtime[frame.ModuleIndex] = frame.Class == export.ClassRuntime
			}
		}
	}
	if float64(without) < unsymbolizedShare*float64(all) || without == 0 {
		return ""
	}
	hint := needs(p, filer, modules, runtime)
	if hint == "" {
		return ""
	}
	return fmt.Sprintf("%s: %.0f %% of the frames, and %.0f %% of the leaves, have no name",
		hint, 100*float64(without)/float64(all), 100*float64(leavesWithout)/float64(leaves))
}

// symbolServer has the symbols of Microsoft's runtimes.
const symbolServer = "https://msdl.microsoft.com/download/symbols"

// needs returns how to name the functions of the image that lacks most names and has a debug file. runtime
// has the images of the runtime.
func needs(p *export.Profile, filer DebugFiler, modules map[int32]int64, runtime map[int32]bool) string {
	best, file := int32(-1), ""
	for m := range p.Modules { // in order, so that equal ones do not change places
		at := int32(m)
		if modules[at] == 0 || best >= 0 && modules[at] <= modules[best] {
			continue
		}
		if name := filer.DebugFile(p.Modules[m].Path, p.Modules[m].BuildID); name != "" {
			best, file = at, name
		}
	}
	if best < 0 {
		return ""
	}
	path := p.Modules[best].Path
	name := export.Base(path)
	dir := strings.TrimSuffix(path, name)
	if t := strings.TrimRight(dir, `/\`); t != "" && !strings.HasSuffix(t, ":") {
		dir = t
	}
	server := "URL"
	if runtime[best] {
		server = symbolServer
	}
	return fmt.Sprintf("add --symbols %s to seedwalk record or report, or put %s into %s, to name the functions of %s",
		server, file, dir, name)
}

// hidesInlined reports whether a profile has managed methods of a runtime that can keep the inlined ones, and
// shows none.
func hidesInlined(p *export.Profile) bool {
	managed := false
	for i := range p.Frames {
		f := &p.Frames[i]
		if strings.HasSuffix(f.Name, " (inlined)") {
			return false
		}
		managed = managed || f.Class == export.ClassManaged
	}
	return managed && p.Stats.Way == export.WayProbe && strings.HasPrefix(p.Runtime, ".NET 9.")
}
