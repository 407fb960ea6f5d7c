package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const tinyRow = `{"b":"tiny","pc":"0x1001","fde":["0x1001","0x1004"],"sig":0,"cfa":"r7+16","r":{"6":"c-16","16":"c-8"}}`

// tinyFolder holds rows, their image, and an image whose program is broken.
func tinyFolder(t *testing.T, row string) string {
	t.Helper()
	dir := tempdir.New(t)
	for name, data := range map[string][]byte{"rows.jsonl": []byte(row), "x86_64_tiny.elf": elfasm.Image(),
		"broken.so": elfasm.ImageWith([]byte{0x3c, 0, 0}), "text": []byte("hello")} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir
}

func TestReplayAndInfoExits(t *testing.T) {
	right, wrong := tinyFolder(t, tinyRow), tinyFolder(t, strings.Replace(tinyRow, "r7+16", "r7+24", 1))
	unknown := filepath.Join(tempdir.New(t), "kind")
	must.Do(t, os.WriteFile(unknown, []byte(`{"id":"a","kind":"dream","arch":"amd64"}`), 0o644))
	for _, c := range []struct {
		name string
		args []string
		code int
		out  string // in the standard output
	}{
		{"replay right", []string{"replay", right}, 0, "100%"},
		{"replay wrong", []string{"replay", wrong}, 1, "FAILS"},
		{"replay nothing", []string{"replay"}, 2, ""},
		{"replay absent", []string{"replay", filepath.Join(right, "absent")}, 3, ""},
		{"replay text", []string{"replay", filepath.Join(right, "text")}, 3, "no vector"},
		{"replay an unknown kind", []string{"replay", unknown}, 3, "dream"},
		{"replay negative max", []string{"replay", "--max", "-1", right}, 2, ""},
		{"info", []string{"info", filepath.Join(right, "x86_64_tiny.elf")}, 0, ".eh_frame"},
		{"info at, file first", []string{"info", filepath.Join(right, "x86_64_tiny.elf"), "--at", "outer"}, 0,
			"push rbp"},
		{"info at, file last", []string{"info", "--at", "1001", filepath.Join(right, "x86_64_tiny.elf")}, 0,
			"mov rbp, rsp"},
		{"info at nothing", []string{"info", "--at", "inner",
			filepath.Join(right, "x86_64_tiny.elf")}, 3, ""},
		{"info check", []string{"info", "--check", filepath.Join(right, "x86_64_tiny.elf")}, 0,
			"nothing found"},
		{"info check broken", []string{"info", "--check", filepath.Join(right, "broken.so")}, 1,
			"bad-opcode"},
		{"info text", []string{"info", filepath.Join(right, "text")}, 3, ""},
		{"info two questions", []string{"info", "--check", "--at", "1", filepath.Join(right, "text")}, 2, ""},
		{"info no file", []string{"info", "--check"}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code, _ := tool(t, c.args...)
			if code != c.code || !strings.Contains(out, c.out) ||
				code != 0 && code != 1 && errs == "" && c.out == "" {
				t.Errorf("exit %d, want %d\n%s\n%s", code, c.code, out, errs)
			}
		})
	}
}

func TestReplayAndInfoJSON(t *testing.T) {
	dir := tinyFolder(t, tinyRow)
	for _, c := range []struct {
		args []string
		keys []string
	}{
		{[]string{"replay", "--json", dir}, []string{"results"}},
		{[]string{"info", "--json", filepath.Join(dir, "x86_64_tiny.elf")},
			[]string{"file", "format", "arch", "id", "base", "sections", "counts"}},
		{[]string{"info", "--json", "--at", "outer", filepath.Join(dir, "x86_64_tiny.elf")},
			[]string{"name", "lo", "hi", "asked", "arch", "from", "data", "lines"}},
		{[]string{"info", "--json", "--check", filepath.Join(dir, "x86_64_tiny.elf")},
			[]string{"file", "format", "arch", "entries", "findings", "seconds", "peak_kib", "file_bytes"}},
	} {
		out, _, _, _ := tool(t, c.args...)
		var got map[string]any
		err := json.Unmarshal([]byte(out), &got)
		must.True(t, err == nil, "%v %v", c.args, err)
		for _, k := range c.keys {
			_, ok := got[k]
			expect.True(t, ok, "%v: no %q", c.args, k)
		}
	}
}
