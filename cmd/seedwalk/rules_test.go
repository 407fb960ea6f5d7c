package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/builder"
	"github.com/seedwalk/seedwalk/testkit/golden"
)

func TestRulesGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
	}{
		{"rules-help", []string{"help", "rules"}},
		{"rules-method", []string{"rules", "getclassfromtokenandtypeargs"}},
		{"rules-callback", []string{"rules", "ThreadAssignedToOSThread"}},
		{"rules-hresult", []string{"rules", "0x80131360"}},
		{"rules-bit", []string{"rules", "COR_PRF_MONITOR_GC"}},
		{"rules-rule", []string{"rules", "thread-destroyed"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			out, errOut, code, _ := tool(t, c.args...)
			if code != 0 || errOut != "" {
				t.Errorf("exit code %d, stderr %q", code, errOut)
			}
			golden.Check(t, filepath.Join("testdata", c.file+".txt"), out)
		})
	}
}

func TestRulesWrongUse(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"a letter wrong", []string{"GetTreadInfo"}, 1, "did you mean GetThreadInfo?"},
		{"a rule nearly", []string{"tread-destroyed"}, 1, "did you mean thread-destroyed?"},
		{"an HRESULT that is none", []string{"80139999"}, 1, `nothing is called "80139999"`},
		{"nothing near", []string{"xyzzyxyzzyxyzzyxyzzy"}, 1, `nothing is called "xyzzyxyzzyxyzzyxyzzy"; seedwalk rules lists`},
		{"a long name", []string{strings.Repeat("x", 100000)}, 1, "nothing is called"},
		{"two names", []string{"a", "b"}, 2, "one name at a time, not 2"},
		{"unknown flag", []string{"--x"}, 2, "seedwalk rules --help"},
	} {
		out, errOut, code, _ := tool(t, append([]string{"rules"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d, %q, %q", c.name, code, out, errOut)
		}
	}
}

func TestRulesJSON(t *testing.T) {
	out, _, code, _ := tool(t, "rules", "--json", "EnumModules")
	var c builder.Contract
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 0 {
		t.Fatalf("exit code %d: %v", code, err)
	}
	if c.Kind != "info" || c.Info.Slot != 66 || len(c.Places) != 8 || c.Places[4].Net9 != "refused (80131363)" {
		t.Errorf("%+v", c)
	}
	out, _, code, _ = tool(t, "rules", "--json")
	var l builder.AllNames
	if err := json.Unmarshal([]byte(out), &l); err != nil || code != 0 || len(l.Info) != 112 || len(l.Callbacks) != 95 {
		t.Errorf("exit code %d, %v, %d and %d methods", code, err, len(l.Info), len(l.Callbacks))
	}
}

// Vendors may use other words: each search finds an answer that names the right rule.
func TestRulesOtherWords(t *testing.T) {
	for word, want := range map[string]string{"ICorProfilerInfo10": "97 SuspendRuntime", "icorprofilercallback2": "73 GarbageCollectionStarted", "ICorProfilerInfo::ForceGC": "slot 28",
		"36": "ICorProfilerInfo2::DoStackSnapshot", "slot 97": "SuspendRuntime", "-2146233501": "UNSUPPORTED_CALL_SEQUENCE", "2148733795": "UNSUPPORTED_CALL_SEQUENCE", "8013135e": "INVALID_TGT_THREAD",
		"FunctionEnter3": "cooperative", "ELT": "cooperative", "COR_PRF_SNAPSHOT_X86_OPTIMIZED": "E_INVALIDARG", "hang": "destroyed-waits", "Deadlock": "destroyed-waits",
		"destroyed-waits": "deadlock", "GetObjectGeneration": "kills the process"} {
		out, errOut, code, _ := tool(t, "rules", word)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s%s", word, code, out, errOut)
		}
	}
	if _, _, code, _ := tool(t, "rules", "127"); code != 1 {
		t.Errorf("a slot that is none: exit code %d", code)
	}
}
