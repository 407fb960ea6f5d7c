package recording

import "github.com/seedwalk/seedwalk/report/collect"

// key is an address in an image.
type key struct {
	path, buildID string
	addr          uint64
}

func (n *Name) key() key { return key{n.Path, n.BuildID, n.Addr} }

// Names are the names that a recording holds. They are a collect.Namer.
type Names struct {
	byAddr map[key]*Name
	// Next finds names that the recording does not have; nil: none.
	Next collect.Namer
}

// Name returns the name of an address. A name from symbols replaces a role in brackets.
func (n *Names) Name(path, buildID string, addr uint64) (string, bool) {
	name := ""
	if found := n.byAddr[key{path, buildID, addr}]; found != nil {
		name = found.Name
	}
	if n.Next != nil && (name == "" || name[0] == '[') {
		if better, ok := n.Next.Name(path, buildID, addr); ok {
			return better, true
		}
	}
	return name, name != ""
}

// Function returns the range of the function that holds an address.
func (n *Names) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	if found := n.byAddr[key{path, buildID, addr}]; found != nil && found.End > found.Start {
		return found.Start, found.End, true
	}
	if n.Next != nil {
		return n.Next.Function(path, buildID, addr)
	}
	return 0, 0, false
}

// Line returns the place in the source of an address.
func (n *Names) Line(path, buildID string, addr uint64) (file string, line int) {
	if found := n.byAddr[key{path, buildID, addr}]; found != nil && found.File != "" {
		return found.File, int(found.Line)
	}
	if liner, ok := n.Next.(collect.Liner); ok {
		return liner.Line(path, buildID, addr)
	}
	return "", 0
}

// DebugFile returns the name of the file that would name an image's code, "" if it is unknown.
func (n *Names) DebugFile(path, buildID string) string {
	if filer, ok := n.Next.(collect.DebugFiler); ok {
		return filer.DebugFile(path, buildID)
	}
	return ""
}

// Keeper is a collect.Namer that adds each answer of another one to a recording.
type Keeper struct {
	collect.Namer
	kept map[key]*Name
}

// NewKeeper returns a Keeper of n's answers.
func NewKeeper(n collect.Namer) *Keeper { return &Keeper{n, map[key]*Name{}} }

// Name asks the other namer.
func (k *Keeper) Name(path, buildID string, addr uint64) (string, bool) {
	name, ok := k.Namer.Name(path, buildID, addr)
	if ok {
		k.entry(path, buildID, addr).Name = name
	}
	return name, ok
}

// Function asks the other namer.
func (k *Keeper) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	start, end, ok = k.Namer.Function(path, buildID, addr)
	if ok {
		n := k.entry(path, buildID, addr)
		n.Start, n.End = start, end
	}
	return start, end, ok
}

// Line asks the other namer.
func (k *Keeper) Line(path, buildID string, addr uint64) (file string, line int) {
	liner, ok := k.Namer.(collect.Liner)
	if !ok {
		return "", 0
	}
	if file, line = liner.Line(path, buildID, addr); file != "" {
		n := k.entry(path, buildID, addr)
		n.File, n.Line = file, uint64(line)
	}
	return file, line
}

// DebugFile asks the other namer.
func (k *Keeper) DebugFile(path, buildID string) string {
	if filer, ok := k.Namer.(collect.DebugFiler); ok {
		return filer.DebugFile(path, buildID)
	}
	return ""
}

func (k *Keeper) entry(path, buildID string, addr uint64) *Name {
	at := key{path, buildID, addr}
	if k.kept[at] == nil {
		k.kept[at] = &Name{Path: path, BuildID: buildID, Addr: addr}
	}
	return k.kept[at]
}

// Write adds the names to a recording.
func (k *Keeper) Write(w *Writer) {
	for _, n := range k.kept {
		w.Name(n)
	}
}
