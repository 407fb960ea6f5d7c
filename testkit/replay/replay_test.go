package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// folder writes files below a temporary folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.Do(t, os.WriteFile(p, []byte(data), 0o644))
	}
	return dir
}

const (
	rightRow = `{"b":"tiny","pc":"0x1001","fde":["0x1001","0x1004"],"sig":0,"cfa":"r7+16","r":{"6":"c-16","16":"c-8"}}`
	fewerRow = `{"b":"tiny","pc":"0x1001","fde":["0x1001","0x1004"],"sig":0,"cfa":"r7+16","r":{}}`
	wrongRow = `{"b":"tiny","pc":"0x1004","fde":["0x1004","0x1005"],"sig":0,"cfa":"r6+24","r":{"6":"c-16","16":"c-8"}}`
	noRow    = `{"b":"tiny","pc":"0x2000","fde":["0x2000","0x2001"],"sig":0,"cfa":"r7+8","r":{}}`
)

func run(t *testing.T, dir string) *Report {
	t.Helper()
	r := Runner{Max: 3}
	must.Do(t, r.Path(dir))
	for _, x := range r.Report.Tallies { // no path of this machine in a golden file
		x.File = strings.TrimPrefix(x.File, dir+"/")
	}
	for i := range r.Report.Skipped {
		r.Report.Skipped[i].File = strings.TrimPrefix(r.Report.Skipped[i].File, dir+"/")
	}
	return &r.Report
}

func TestRows(t *testing.T) {
	for _, c := range []struct {
		name                  string
		line                  string
		right, wrong, refused int
	}{
		{"right", rightRow, 1, 0, 0},
		{"registers not listed are not compared", fewerRow, 1, 0, 0},
		{"wrong cfa", wrongRow, 0, 1, 0},
		{"no FDE", noRow, 0, 0, 1},
		{"wrong range", strings.Replace(rightRow, `"0x1004"`, `"0x1005"`, 1), 0, 1, 0},
		{"wrong signal", strings.Replace(rightRow, `"sig":0`, `"sig":1`, 1), 0, 1, 0},
		{"wrong register", strings.Replace(rightRow, `c-16`, `c-24`, 1), 0, 1, 0},
		{"no register", strings.Replace(rightRow, `"6":`, `"x":`, 1), 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := run(t, folder(t, map[string]string{"rows/any.jsonl": c.line,
				"rowbin/x86_64_tiny.elf": string(elfasm.Image())}))
			must.Equal(t, len(rep.Tallies), 1, rep)
			got := rep.Tallies[0]
			expect.True(t, got.Right == c.right && got.Wrong == c.wrong && got.Refused == c.refused &&
				rep.Bad() == (c.right == 0), "%+v", got)
		})
	}
}

func TestTextGolden(t *testing.T) {
	rows := strings.Join([]string{rightRow, wrongRow, noRow, ""}, "\n")
	rep := run(t, folder(t, map[string]string{
		"rows/any.jsonl": rows, "rowbin/x86_64_tiny.elf": string(elfasm.Image()),
		"t.nettrace": "Nettrace, and so on", "c.json": "{\n \"version\": 1,\n \"baseline\": \"empty\"\n}\n",
		"README.md": "not a vector", "broken.jsonl": "{\"b\":\"absent\",\"pc\":\"0x1\"}\n",
	}))
	var b bytes.Buffer
	rep.Text(&b)
	text := b.String()
	if i := strings.Index(text, "open /"); i >= 0 { // the system's own words about the missing file
		text = text[:i] + "(absent)\n" + text[i+strings.IndexByte(text[i:], '\n')+1:]
	}
	file := filepath.Join("testdata", "report.txt")
	golden.Check(t, file, text)
}

// tinySnap is a thread at the second instruction of "outer", whose caller lies
// at 0x9000, outside every module.
func tinySnap(caller, class string) map[string]string { return deepSnap(1, "", caller, class) }

// deepSnap is a stack of that many calls of "outer", in a module of which a
// build id was recorded, if there is one.
func deepSnap(calls int, build, caller, class string) map[string]string {
	regs := ""
	for _, r := range []string{"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10",
		"r11", "r12", "r13", "r14", "r15"} {
		regs += fmt.Sprintf("%q:\"0x0\",", r)
	}
	mod := `[{"path":"tiny","file":"files/tiny","build_id":"` + build +
		`","bias":"0x0","lo":"0x1000","hi":"0x1200"}]`
	frames := `[{"pc":"0x1001","sp":"0x7000","kind":"top","regs":{"rbp":"0x0"}}`
	stack := make([]byte, 16*calls+48)
	for i := range calls {
		stack[16*i], stack[16*i+8], stack[16*i+9] = 0x33, 0x02, 0x10 // rbp; a return address in "outer"
		pc := "0x1002"
		if i == calls-1 {
			pc, stack[16*i+8], stack[16*i+9] = caller, 0x00, 0x90
		}
		frames += fmt.Sprintf(`,{"pc":%q,"sp":"%#x","kind":"ret","regs":{"rbp":"0x33"}}`, pc, 0x7010+16*i)
	}
	frames += "]"
	return map[string]string{
		"files/tiny": string(elfasm.Image()), "snap/s.bin": string(stack),
		"snap/s.json": `{"schema":"h4.snap.v1","arch":"x86_64","program":"p","blob":"s.bin","modsets":[` +
			mod + `],"snapshots":[{"id":"one","modset":0,` +
			`"regs":{` + regs + `"rsp":"0x7000","rip":"0x1001"},"mem":[{"addr":"0x7000","len":` +
			fmt.Sprint(len(stack)) + `,"off":0}],"frames":` + frames + `,"class":"` + class + `"}]}`,
	}
}

func TestSnapshots(t *testing.T) {
	for _, c := range []struct {
		name, caller, class   string
		right, wrong, refused int
		bad                   bool
	}{
		{"right", "0x9000", "cfi_exact_end_nocfi", 1, 0, 0, false},
		{"wrong caller", "0x9001", "cfi_exact_end_nocfi", 0, 1, 0, true},
		{"wrong where no unwind data helps", "0x9001", "nocfi_frame", 0, 1, 0, true},
		{"misled is no failure", "0x9001", "cfi_misleads", 0, 0, 1, false},
		{"rewritten is no failure", "0x9001", "context_rewritten", 0, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := run(t, folder(t, tinySnap(c.caller, c.class)))
			must.Equal(t, len(rep.Tallies), 1, rep)
			got := rep.Tallies[0]
			expect.True(t, got.Kind == c.class && got.Right == c.right && got.Wrong == c.wrong &&
				got.Refused == c.refused && rep.Bad() == c.bad, "%+v", got)
		})
	}
}

// A stack of any depth is walked to its end.
func TestDeepStack(t *testing.T) {
	const calls = 5000
	got := run(t, folder(t, deepSnap(calls, "", "0x9000", "cfi_exact_end_nocfi"))).Tallies[0]
	expect.True(t, got.Right == 1 && got.RightFrames == calls+1,
		"%d right, %d of %d frames", got.Right, got.RightFrames, got.Frames)
}

// A stack that ran in another build of a module is not judged, and says so.
func TestAnotherBuild(t *testing.T) {
	rep := run(t, folder(t, deepSnap(1, "00ff", "0x9001", "cfi_exact_end_nocfi")))
	expect.True(t, !rep.Bad() && len(rep.Tallies) == 0 && rep.Unreadable() &&
		strings.Contains(rep.Skipped[0].Why, "another build"), "%+v", rep)
}

// What a lax class refuses is shown, as no failure.
func TestLaxRefusalIsShown(t *testing.T) {
	rep := run(t, folder(t, tinySnap("0x9001", "cfi_misleads")))
	got := rep.Tallies[0]
	expect.True(t, len(got.Mismatches) == 1 && got.Mismatches[0].Verdict == "refused" && !rep.Bad(),
		"%+v", got)
	var b bytes.Buffer
	rep.Text(&b)
	expect.True(t, strings.Contains(b.String(), "no failure: refused") &&
		strings.Contains(b.String(), "0x9001"[2:]), "%v", b.String())
}

// The lines after one that cannot be judged are judged, and such lines are
// named, but not all.
func TestBadLines(t *testing.T) {
	bad := `{"id":"a","kind":"exec","arch":"amd64","base":7}` + "\n"
	row := func(n int) string { return rightRow + "\n" + strings.Repeat(bad, n) + wrongRow + "\n" + rightRow }
	for _, c := range []struct{ bad, asides int }{{0, 0}, {1, 1}, {5, 5}, {9, 6}} {
		rep := run(t, folder(t, map[string]string{"r.jsonl": row(c.bad),
			"x86_64_tiny.elf": string(elfasm.Image())}))
		got := rep.Tallies[0]
		expect.True(t, got.Right == 2 && got.Wrong == 1 && len(rep.Skipped) == c.asides &&
			rep.Unreadable() == (c.bad > 0), "%d bad lines: %+v, %+v", c.bad, got, rep.Skipped)
	}
}

func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		ask   string
	}{
		"no module": {map[string]string{"snap/s.json": tinySnap("0x9000", "cfi_exact")["snap/s.json"]},
			"snap/s.json"},
		"another schema": {map[string]string{"s.json": `{"schema":"h4.snap.v9"}`}, "s.json"},
		"text":           {map[string]string{"s.txt": "hello"}, "s.txt"},
		"cut JSON":       {map[string]string{"s.jsonl": rightRow[:40]}, "s.jsonl"},
		"cut second line": {map[string]string{"r.jsonl": rightRow + "\n" + rightRow[:40],
			"x86_64_tiny.elf": string(elfasm.Image())}, "r.jsonl"},
		"cut gzip":     {map[string]string{"s.gz": "\x1f\x8b\x08"}, "s.gz"},
		"a path as id": {map[string]string{"r.jsonl": `{"b":"../x","pc":"0x1"}`}, "r.jsonl"},
		"architecture": {map[string]string{"v.jsonl": `{"id":"a","kind":"exec","arch":"mips"}`}, "v.jsonl"},
		"kind":         {map[string]string{"v.jsonl": `{"id":"a","kind":"dream","arch":"amd64"}`}, "v.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.files)
			rep := run(t, filepath.Join(dir, c.ask))
			expect.True(t, rep.Unreadable(), "%+v", rep)
		})
	}
	expect.True(t, (&Runner{}).Path(filepath.Join(t.TempDir(), "absent")) != nil,
		"an absent file was replayed")
}

// TestVectors replays everything there is: no point may fail.
func TestVectors(t *testing.T) {
	dir, err := snap.Vectors()
	if err != nil {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	r := Runner{Max: 3}
	must.Do(t, r.Path(dir))
	for _, x := range r.Report.Tallies {
		t.Logf("%s %s: %d points, %d right, %d wrong, %d refused", shortName(x.File), x.Kind,
			x.Points, x.Right, x.Wrong, x.Refused)
		for i := range x.Mismatches {
			var b bytes.Buffer
			mismatch(&b, x, &x.Mismatches[i])
			if x.Failure(&x.Mismatches[i]) {
				t.Error(b.String())
			} else {
				t.Log(b.String())
			}
		}
	}
	for _, a := range r.Report.Skipped {
		expect.True(t, !a.Error, "%s: %s", a.File, a.Why)
	}
	expect.True(t, len(r.Report.Tallies) != 0, "nothing was replayed")
}
