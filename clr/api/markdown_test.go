package api

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/golden"
)

// The generated files match the tables.
func TestWrittenFilesAreCurrent(t *testing.T) {
	for path, want := range map[string]string{"../../docs/contracts.md": Load().Markdown(), "../../capi/checked/src/table.h": Load().CTable()} {
		golden.Check(t, path, want)
	}
}
