package cfi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/module"
)

// rowLine is one expected row of the elf vectors.
type rowLine struct {
	B   string                     `json:"b"`
	PC  string                     `json:"pc"`
	FDE [2]string                  `json:"fde"`
	Sig int                        `json:"sig"`
	CFA json.RawMessage            `json:"cfa"`
	R   map[string]json.RawMessage `json:"r"`
	Row string                     `json:"row_start"`
	RAS int                        `json:"ra_sign_state"`
}

func hex(t *testing.T, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func loadFile(t testing.TB, path string) (*elf.File, *cfi.Table) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := f.CFISections()
	table, err := cfi.Load(module.CFISections(f, s))
	if err != nil || s.Err != nil {
		t.Logf("%s: %v %v", filepath.Base(path), err, s.Err)
	}
	return f, table
}

// ruleText writes a rule as the vectors do.
func ruleText(r cfi.Rule) string {
	switch r.Kind {
	case cfi.Undefined:
		return `"u"`
	case cfi.SameValue:
		return `"s"`
	case cfi.Offset:
		return fmt.Sprintf(`"c%+d"`, r.Off)
	case cfi.ValOffset:
		return fmt.Sprintf(`"v%+d"`, r.Off)
	case cfi.Register:
		return fmt.Sprintf(`"r%d"`, r.Reg)
	case cfi.RegisterOffset:
		return fmt.Sprintf(`"r%d%+d"`, r.Reg, r.Off)
	case cfi.Expression:
		return `{"expr":` + opsText(r.Expr) + `}`
	case cfi.ValExpression:
		return `{"valexpr":` + opsText(r.Expr) + `}`
	}
	return "?"
}

// opsText decodes an expression the way the vectors do: opcode and operands.
func opsText(e []byte) string {
	var out []string
	r := buf.At(e, 0)
	for r.Len() > 0 {
		op := r.U8()
		var a, b int64
		switch {
		case op >= 0x70 && op <= 0x8f, op == 0x11:
			a = r.SLEB()
		case op == 0x10, op == 0x23:
			a = int64(r.ULEB())
		case op == 0x92:
			a = int64(r.ULEB())
			b = r.SLEB()
		case op == 0x08, op == 0x94:
			a = int64(r.U8())
		case op == 0x09:
			a = int64(int8(r.U8()))
		case op == 0x0a:
			a = int64(r.U16())
		case op == 0x0b:
			a = int64(int16(r.U16()))
		}
		out = append(out, fmt.Sprintf(`["%#x","%d","%d"]`, op, a, b))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// vectorOmits names the rules that the vectors leave out although the record
// has them: ld.so's FDE at 0x1c080 says DW_CFA_register x30 in x15 from 0x1c094
// on, which readelf shows and the vector's "r" does not list.
var vectorOmits = map[string]string{"ld0x1c0a3": "30"}

func compact(raw json.RawMessage) string {
	return strings.NewReplacer(" ", "", `\u002b`, "+").Replace(string(raw))
}

// TestVectorRows compares every row of the vectors: readelf's and libdw's
// common answer.
func TestVectorRows(t *testing.T) {
	dir := vectorDir(t)
	files, _ := filepath.Glob(filepath.Join(dir, "rows", "*.jsonl"))
	if len(files) == 0 {
		t.Fatal("no row files in", dir)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkRows(t, dir, file) })
	}
}

func checkRows(t *testing.T, dir, file string) {
	arch, _, _ := strings.Cut(filepath.Base(file), "_")
	if arch == "x86" { // cut inside x86_64
		arch = "x86_64"
	}
	tables := map[string]*cfi.Table{}
	fd, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer fd.Close()
	var m cfi.Machine
	var row cfi.Row
	total, right := 0, 0
	sc := bufio.NewScanner(fd)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var want rowLine
		if err := json.Unmarshal(sc.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		tab := tables[want.B]
		if tab == nil {
			tab = openRowBin(t, dir, arch, want.B)
			tables[want.B] = tab
		}
		total++
		if msg := checkRow(t, tab, &m, &row, &want); msg != "" {
			if total-right <= 5 {
				t.Errorf("%s: %s", sc.Text(), msg)
			}
			continue
		}
		right++
	}
	t.Logf("%s: %d of %d rows right", filepath.Base(file), right, total)
	if right != total || total == 0 {
		t.Errorf("%d of %d rows right", right, total)
	}
}

func openRowBin(t *testing.T, dir, arch, name string) *cfi.Table {
	for _, suffix := range []string{".elf", ".full.elf"} {
		p := filepath.Join(dir, "rowbin", arch+"_"+name+suffix)
		if _, err := os.Stat(p); err == nil {
			_, tab := loadFile(t, p)
			return tab
		}
	}
	t.Fatalf("no rowbin for %s %s", arch, name)
	return nil
}

func checkRow(t *testing.T, tab *cfi.Table, m *cfi.Machine, row *cfi.Row, want *rowLine) string {
	if want.Row != "" {
		if why := m.Row(tab, hex(t, want.Row), row); why != cfi.None {
			return why.String()
		}
		if row.RASign != (want.RAS == 1) {
			return fmt.Sprintf("RASign = %v", row.RASign)
		}
		if row.Lo != hex(t, want.Row) {
			return fmt.Sprintf("Lo = %#x", row.Lo)
		}
		return ""
	}
	pc := hex(t, want.PC)
	if why := m.Row(tab, pc, row); why != cfi.None {
		return why.String()
	}
	if row.FDE.Signal != (want.Sig == 1) {
		return fmt.Sprintf("FDE = %+v", row.FDE)
	}
	// The vectors' "fde" is libdw's range of the row, whose start is too low
	// after DW_CFA_restore_state (it is restored with the rules).
	if row.Lo < hex(t, want.FDE[0]) || row.Lo > pc || row.Hi != hex(t, want.FDE[1]) {
		return fmt.Sprintf("row = [%#x,%#x)", row.Lo, row.Hi)
	}
	if got := ruleText(row.CFA); got != compact(want.CFA) {
		return "cfa = " + got
	}
	return checkRegs(tab, row, want)
}

func checkRegs(tab *cfi.Table, row *cfi.Row, want *rowLine) string {
	seen := 0
	for name, raw := range want.R {
		reg, _ := strconv.Atoi(name)
		got := ruleText(row.Rule(tab.Arch(), uint16(reg)))
		if got != compact(raw) {
			return fmt.Sprintf("r%d = %s", reg, got)
		}
		seen++
	}
	for c := range row.Regs {
		reg := strconv.Itoa(int(cfi.RegisterOf(tab.Arch(), c)))
		if _, ok := want.R[reg]; ok || row.Regs[c].Kind == cfi.Unspecified || vectorOmits[want.B+want.PC] == reg {
			continue
		}
		return fmt.Sprintf("r%s = %s, not in the vector", reg, ruleText(row.Regs[c]))
	}
	return ""
}

// vectorDir finds the unpacked elf vectors, unpacking them into a directory of
// the test where they are still an archive.
func vectorDir(t testing.TB) string {
	t.Helper()
	root := os.Getenv("SEEDWALK_VECTORS")
	if root == "" {
		root = walkUp("go.mod", "../shared/vectors")
	}
	archive := filepath.Join(root, "elf", "elf.tar.gz")
	if _, err := os.Stat(archive); err != nil {
		t.Skip("SKIPPED-CHECK: the elf vectors are not here")
	}
	return unpack(t, archive)
}

func walkUp(mark, rel string) string {
	dir, _ := os.Getwd()
	for {
		if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
			return filepath.Join(dir, rel)
		}
		if dir == filepath.Dir(dir) {
			return rel
		}
		dir = filepath.Dir(dir)
	}
}
