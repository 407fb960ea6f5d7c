package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/report/inspect"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// rowLine is one expected row, or one expected signing state (RowStart).
type rowLine struct {
	B        string                     `json:"b"`
	PC       string                     `json:"pc"`
	FDE      [2]string                  `json:"fde"`
	Sig      int                        `json:"sig"`
	CFA      json.RawMessage            `json:"cfa"`
	R        map[string]json.RawMessage `json:"r"`
	RowStart string                     `json:"row_start"`
	RASign   int                        `json:"ra_sign_state"`
}

// rowImage is the ELF file of rows.
type rowImage struct {
	file  *elf.File
	table *cfi.Table
}

// Rows judges one file of rows.
type Rows struct {
	r    *Score
	read func(rel string) ([]byte, error)
	// Extra, if not nil, is called for each rule of a row that the vector does not list. Such
	// a rule is neither right nor wrong.
	Extra  func(binary, pc string, register int)
	images map[string]*rowImage
	m      cfi.Machine
	row    cfi.Row
}

// NewRows counts into s. read reads a file by a path that is relative to the
// folder of the rows.
func NewRows(s *Score, read func(rel string) ([]byte, error)) *Rows {
	return &Rows{r: s, read: read, images: map[string]*rowImage{}}
}

// Line judges one line.
func (x *Rows) Line(data []byte) error {
	var want rowLine
	if err := json.Unmarshal(data, &want); err != nil {
		return err
	}
	im, err := x.image(want.B)
	if err != nil {
		return err
	}
	if want.RowStart != "" {
		return x.sign(im, &want)
	}
	return x.full(im, &want)
}

// image finds the ELF file of binary b beside the rows: ../rowbin/ARCH_b.elf,
// or the same folder.
func (x *Rows) image(b string) (*rowImage, error) {
	if im := x.images[b]; im != nil {
		return im, nil
	}
	if strings.ContainsAny(b, "/\\") {
		return nil, fmt.Errorf("binary id %q is no file name", b)
	}
	data, at, err := x.find(b)
	if err != nil {
		return nil, err
	}
	f, err := elf.New(data, at)
	if err != nil {
		return nil, err
	}
	table, _ := cfi.Load(module.CFISections(f, f.CFISections())) // usable in spite of damage
	im := &rowImage{f, table}
	x.images[b] = im
	return im, nil
}

func (x *Rows) find(b string) ([]byte, string, error) {
	base := path.Base(filepath.ToSlash(x.r.File))
	var missing error
	for _, arch := range archOrder(base) {
		for _, suffix := range []string{".elf", ".full.elf"} {
			for _, dir := range []string{"../rowbin/", "rowbin/", ""} {
				p := dir + arch + "_" + b + suffix
				data, err := x.read(p)
				if err == nil {
					return data, path.Base(p), nil
				}
				if missing == nil || !errors.Is(err, fs.ErrNotExist) {
					missing = err
				}
			}
		}
	}
	return nil, "", fmt.Errorf("the ELF file of rows %q: %w", b, missing)
}

// archOrder lists the architectures. The one in the file's name is first.
func archOrder(name string) []string {
	if strings.HasPrefix(name, "aarch64") {
		return []string{"aarch64", "x86_64"}
	}
	return []string{"x86_64", "aarch64"}
}

func number(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
}

// sign judges a signing state.
func (x *Rows) sign(im *rowImage, want *rowLine) error {
	at, err := number(want.RowStart)
	if err != nil {
		return err
	}
	t := x.r.tally("rasign", true)
	why := x.m.Row(im.table, at, &x.row)
	v := wrong
	switch {
	case why != cfi.None:
		v = refused
	case x.row.Lo == at && x.row.RASign == (want.RASign == 1):
		v = right
	}
	x.r.count(t, v, func() Mismatch {
		values := []Pair{{"row start", want.RowStart, fmt.Sprintf("%#x", x.row.Lo)},
			{"ra_sign_state", fmt.Sprint(want.RASign), sign(x.row.RASign)}}
		return x.mismatch(im, want, at, why, values)
	})
	return nil
}

func sign(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// full judges a whole row.
func (x *Rows) full(im *rowImage, want *rowLine) error {
	pc, err := number(want.PC)
	if err != nil {
		return err
	}
	lo, err1 := number(want.FDE[0])
	hi, err2 := number(want.FDE[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	t := x.r.tally("rows", true)
	why := x.m.Row(im.table, pc, &x.row)
	v := right
	values := x.values(im, want)
	switch {
	case why != cfi.None:
		v = refused
	// "fde" is the range of the row; after DW_CFA_restore_state its oracle
	// gives too low a start.
	case x.row.Lo < lo || x.row.Lo > pc || x.row.Hi != hi:
		v = wrong
		values = append(values, Pair{"range", fmt.Sprintf("[%#x,%#x)", lo, hi),
			fmt.Sprintf("[%#x,%#x)", x.row.Lo, x.row.Hi)})
	case differ(values):
		v = wrong
	}
	x.r.count(t, v, func() Mismatch { return x.mismatch(im, want, pc, why, values) })
	x.extra(im.table.Arch(), want)
	return nil
}

// extra calls Extra for the row's rules that the vector does not list.
func (x *Rows) extra(arch context.Arch, want *rowLine) {
	if x.Extra == nil {
		return
	}
	for c := range x.row.Regs {
		n := int(cfi.RegisterOf(arch, c))
		if _, listed := want.R[strconv.Itoa(n)]; !listed && x.row.Regs[c].Kind != cfi.Unspecified {
			x.Extra(want.B, want.PC, n)
		}
	}
}

func differ(values []Pair) bool {
	return slices.ContainsFunc(values, func(p Pair) bool { return p.Want != p.Got })
}

// values returns the expected rules beside the row's rules. A register that the vector does not
// list is unspecified there, and is not compared.
func (x *Rows) values(im *rowImage, want *rowLine) []Pair {
	arch := im.table.Arch()
	out := []Pair{{"cfa", compact(want.CFA), wireRule(&x.row.CFA)},
		{"signal", fmt.Sprint(want.Sig), sign(x.row.FDE.Signal)}}
	var regs []int
	for name := range want.R {
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || n > 0xffff {
			out = append(out, Pair{"r" + name, string(want.R[name]), "no register number"})
			continue
		}
		regs = append(regs, n)
	}
	sort.Ints(regs)
	for _, n := range regs {
		rule := x.row.Rule(arch, uint16(n))
		out = append(out, Pair{inspect.RegName(arch, uint16(n)),
			compact(want.R[strconv.Itoa(n)]), wireRule(&rule)})
	}
	return out
}

func (x *Rows) mismatch(im *rowImage, want *rowLine, pc uint64, why cfi.Reason, values []Pair) Mismatch {
	m := Mismatch{ID: want.B, Where: fmt.Sprintf("pc %#x", pc), Why: "the row differs", Values: values}
	if why != cfi.None {
		m.Why = "refused: " + why.String()
	}
	arch := im.table.Arch()
	m.Info = fdeRows(im.table, pc)
	if code, ok := im.file.BytesAt(pc, 16); ok && !zero(code) {
		m.Code = codeText(arch, pc, pc, code)
	}
	return m
}

// compact writes a rule of the vectors without blanks.
func compact(raw json.RawMessage) string {
	return strings.NewReplacer(" ", "", `\u002b`, "+").Replace(string(raw))
}
