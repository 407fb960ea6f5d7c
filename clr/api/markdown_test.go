package api

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/contracts.md anew")

// docs/contracts.md is what the tables say today.
func TestDocsAreCurrent(t *testing.T) {
	const path = "../../docs/contracts.md"
	want := Load().Markdown()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/contracts.md is not what the tables say (%v): run go test ./clr/api -update", err)
	}
}
