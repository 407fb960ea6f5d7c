package api

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/contracts.md and capi/checked/src/table.h anew")

// The generated files match the tables.
func TestWrittenFilesAreCurrent(t *testing.T) {
	for path, want := range map[string]string{"../../docs/contracts.md": Load().Markdown(), "../../capi/checked/src/table.h": Load().CTable()} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the tables say (%v): run go test ./clr/api -update", path, err)
		}
	}
}
