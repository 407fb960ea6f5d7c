package snap

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Hex is an unsigned 64-bit number written as a "0x..." string.
type Hex uint64

// UnmarshalJSON reads "0x1f" or null (0).
func (h *Hex) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return err
	}
	v, err := strconv.ParseUint(*s, 0, 64)
	*h = Hex(v)
	return err
}

// Schema is what a snapshot file calls its own layout.
const Schema = "h4.snap.v1"

// Program is one traced run.
type Program struct {
	Schema    string     `json:"schema"`
	Arch      string     `json:"arch"` // x86_64 | aarch64
	Program   string     `json:"program"`
	Blob      string     `json:"blob"`
	Modsets   [][]Mod    `json:"modsets"`
	Snapshots []Snapshot `json:"snapshots"`

	blob    []byte
	archive *Archive
	tables  []*module.Table
	broken  []error // why a table could not be made
}

// Mod is one mapped module.
type Mod struct {
	Path    string `json:"path"`
	File    string `json:"file"` // name in the archive
	BuildID string `json:"build_id"`
	Bias    Hex    `json:"bias"`
	Lo      Hex    `json:"lo"`
	Hi      Hex    `json:"hi"`
}

// Snapshot is a thread at one instruction.
type Snapshot struct {
	ID     string         `json:"id"`
	Modset int            `json:"modset"`
	Regs   map[string]Hex `json:"regs"`
	Mem    []struct {
		Addr Hex `json:"addr"`
		Len  int `json:"len"`
		Off  int `json:"off"`
	} `json:"mem"`
	Frames []Frame `json:"frames"` // innermost first
	// Class: cfi_exact, cfi_exact_end_nocfi, nocfi_frame, cfi_misleads or
	// context_rewritten.
	Class string `json:"class"`
	// CFIOK is how many frames unwind data alone gives.
	CFIOK int `json:"cfi_ok_frames"`
	// DisputedFrom is the first frame whose Regs the trackers disagree on.
	DisputedFrom *int `json:"regs_disputed_from"`
}

// Frame is one true frame.
type Frame struct {
	PC   Hex            `json:"pc"`
	SP   *Hex           `json:"sp"`   // nil: unknown
	Kind string         `json:"kind"` // top | ret | tramp | sig
	Mod  string         `json:"mod"`
	Func string         `json:"func"`
	Regs map[string]Hex `json:"regs"` // callee-saved values in this frame
}

// Load reads one snapshot file of Programs.
func (a *Archive) Load(name string) (*Program, error) {
	data, ok := a.files[name]
	if !ok {
		return nil, fmt.Errorf("snap: no file %q", name)
	}
	p := &Program{archive: a}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("snap: %s: %w", name, err)
	}
	if p.Schema != Schema {
		return nil, fmt.Errorf("snap: %s: schema %q, want %s", name, p.Schema, Schema)
	}
	blob := path.Join(path.Dir(name), p.Blob)
	if p.blob, ok = a.files[blob]; !ok {
		return nil, fmt.Errorf("snap: %s: no blob %q", name, blob)
	}
	p.tables, p.broken = make([]*module.Table, len(p.Modsets)), make([]error, len(p.Modsets))
	return p, nil
}

// Window builds a snapshot's readable memory.
func (p *Program) Window(s *Snapshot) (*memory.Window, error) {
	runs := make([]memory.Run, 0, len(s.Mem))
	for _, m := range s.Mem {
		if m.Off < 0 || m.Len < 0 || m.Off > len(p.blob) || m.Len > len(p.blob)-m.Off {
			return nil, fmt.Errorf("snap: %s: memory run %d+%d outside the blob of %d bytes",
				s.ID, m.Off, m.Len, len(p.blob))
		}
		runs = append(runs, memory.Run{Addr: uint64(m.Addr), Data: p.blob[m.Off : m.Off+m.Len]})
	}
	return memory.New(runs...), nil
}

// Table builds, once, the module table a snapshot needs. Its generation is the
// modset's index plus one. It fails with ErrBuild if a module's file is not the
// one that ran.
func (p *Program) Table(s *Snapshot) (*module.Table, error) {
	if s.Modset < 0 || s.Modset >= len(p.Modsets) {
		return nil, fmt.Errorf("snap: %s: modset %d of %d", s.ID, s.Modset, len(p.Modsets))
	}
	k := s.Modset
	if p.tables[k] == nil && p.broken[k] == nil {
		p.tables[k], p.broken[k] = p.table(k)
	}
	return p.tables[k], p.broken[k]
}

func (p *Program) table(modset int) (*module.Table, error) {
	var mods []module.Module
	for i, m := range p.Modsets[modset] {
		mod := module.Module{ID: uint32(i), Start: uint64(m.Lo), End: uint64(m.Hi), Bias: uint64(m.Bias),
			Path: m.Path, BuildID: m.BuildID}
		data, ok := p.archive.File(m.File)
		if !ok {
			return nil, fmt.Errorf("snap: %s: no module file %q", p.Program, m.File)
		}
		if err := fill(&mod, data); err != nil {
			return nil, fmt.Errorf("snap: %s: %s: %w", p.Program, m.File, err)
		}
		mods = append(mods, mod)
	}
	return module.NewTable(uint32(modset)+1, mods, nil), nil
}
