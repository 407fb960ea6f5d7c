package live

import (
	"os"
	"runtime"
	"testing"
)

// This process: its own code must be found, with the bias that makes a known
// function's address one of the file's.
func TestTableOfThisProcess(t *testing.T) {
	maps, err := Maps(0)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLoader(0)
	table := l.Table(maps)
	pc, _, _, _ := runtime.Caller(0)
	i := table.Find(uint64(pc))
	if i < 0 {
		t.Fatalf("no module at %#x", pc)
	}
	m := table.At(i)
	exe, _ := os.Executable()
	if m.Path != exe || m.ELF == nil {
		t.Errorf("module %q, error %v", m.Path, m.Err)
	}
	if b, ok := m.ELF.BytesAt(uint64(pc)-m.Bias, 1); !ok || len(b) != 1 {
		t.Errorf("pc %#x is not in the file at bias %#x", pc, m.Bias)
	}
	again := l.Table(maps)
	if again.At(i).ID != m.ID || again.At(i).ELF != m.ELF || again.Generation() == table.Generation() {
		t.Error("a second table must share the images, keep their IDs, and have a generation of its own")
	}
	vdso(t, l, maps)
}

func vdso(t *testing.T, l *Loader, maps []Mapping) {
	t.Helper()
	for i := range maps {
		if maps[i].Path != "[vdso]" {
			continue
		}
		if m := l.image(&maps[i]); m.CFI == nil || m.Bias != maps[i].Start {
			t.Errorf("vdso: bias %#x, CFI %v, error %v", m.Bias, m.CFI, m.Err)
		}
	}
}
