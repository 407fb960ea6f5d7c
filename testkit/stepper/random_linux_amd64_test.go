package stepper

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var (
	points = flag.Int("points", 0,
		"points of a random program or another language's at most; 0: 10,000 with -all, else 1,500")
	first = flag.Uint64("first", 0, "number of the first random program")
	other = flag.String("builds", "",
		"file of builds to step instead of a table of random programs or languages")
)

// randomBuilds are builds of random programs, one program for each: a name, a compiler, and its options.
// Builds with a star are also stepped without -all.
const randomBuilds = `
  gcc-11-O1            gcc-11 -O1 -fno-plt -foptimize-sibling-calls
  gcc-11-no-ipa-ra     gcc-11 -O2 -fcf-protection=none -fno-ipa-ra
  gcc-11-v3            gcc-11 -O3 -march=x86-64-v3 -fno-semantic-interposition
  gcc-11-outgoing      gcc-11 -Os -fomit-frame-pointer -maccumulate-outgoing-args
  gcc-11-Og            gcc-11 -Og -fno-dwarf2-cfi-asm
* gcc-Oz               gcc -Oz -fipa-pta
  gcc-avx512           gcc -O3 -mavx512f -mprefer-vector-width=512 -mforce-drap
  gcc-realign          gcc -O2 -mstackrealign -mincoming-stack-boundary=3
  gcc-thunk            gcc -O2 -mfunction-return=thunk -mindirect-branch=thunk -fcf-protection=none
* gcc-thunk-inline     gcc -O3 -mfunction-return=thunk-inline -mindirect-branch=thunk-inline
  gcc-indirect-thunk   gcc -O2 -mindirect-branch=thunk -fcf-protection=none
  gcc-extern-thunk     gcc -O1 -mindirect-branch=thunk -mindirect-branch-register
  gcc-sls              gcc -O2 -mharden-sls=all -fcf-protection=none
  gcc-no-red-zone      gcc -O3 -mno-red-zone -fstack-protector-strong -fstack-clash-protection
  gcc-pg               gcc -O2 -pg -no-pie
  gcc-fentry           gcc -O1 -pg -mfentry -no-pie
  gcc-instrument       gcc -O2 -finstrument-functions
  gcc-patchable        gcc -O2 -fpatchable-function-entry=8,3
  gcc-no-shrink-wrap   gcc -O2 -fno-shrink-wrap -fno-tree-tail-merge -fno-reorder-blocks
  gcc-no-push-args     gcc -O2 -mno-push-args -mskip-rax-setup -fno-toplevel-reorder
  gcc-large            gcc -O2 -mcmodel=large -fno-pie -no-pie
* gcc-zeroed           gcc -O2 -fzero-call-used-regs=all
  gcc-profile          gcc -O2 -fprofile-generate -fprofile-update=single -fno-pie -no-pie
  gcc-debug-frame      gcc -O2 -g -fno-asynchronous-unwind-tables
  gcc-lto-static       gcc -O3 -flto -fwhole-program -static
  gcc-split-stack      gcc -O2 -fsplit-stack -fuse-ld=gold
  gcc-stack-check      gcc -O1 -fstack-protector-all -fstack-check
  gcc-sections         gcc -O2 -ffunction-sections -Wl,--gc-sections -Wl,-z,separate-code -Wl,--no-ld-generated-unwind-info
  gcc-atom             gcc -O2 -fno-inline -fno-ipa-icf -mtune=atom
  gcc-bdver2           gcc -O2 -mtune=bdver2 -fno-schedule-insns2 -fno-omit-frame-pointer
  clang-13-sync        clang-13 -O2 -fno-asynchronous-unwind-tables -funwind-tables
  clang-13-O1          clang-13 -O1
  clang-14-no-tail     clang-14 -Os -fno-optimize-sibling-calls
  clang-15-v3          clang-15 -O3 -march=x86-64-v3
  clang-15-retpoline   clang-15 -O2 -mretpoline -fcf-protection=none
  clang-16-clash       clang-16 -O2 -fstack-clash-protection -fstack-protector-all
  clang-16-lvi-cfi     clang-16 -O2 -mlvi-cfi
  clang-16-lvi         clang-16 -O1 -mlvi-hardening
  clang-16-slh         clang-16 -O2 -mspeculative-load-hardening
  clang-16-blocks      clang-16 -O2 -fbasic-block-sections=all -fuse-ld=lld
* clang-19-blocks      clang-19 -O2 -fbasic-block-sections=all -fuse-ld=lld
  clang-19-outline     clang-19 -Oz -moutline
  clang-19-outline-all clang-19 -Os -mllvm -enable-machine-outliner=always
* clang-19-lvi         clang-19 -O2 -mlvi-hardening
  clang-19-zeroed      clang-19 -O2 -fzero-call-used-regs=used
  clang-19-align       clang-19 -O2 -mstack-alignment=64 -mstackrealign
  clang-19-avx512      clang-19 -O3 -mavx512f -mprefer-vector-width=512
  clang-19-frames      clang-19 -O3 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -mno-red-zone
  clang-19-patchable   clang-19 -O2 -fpatchable-function-entry=5 -fms-hotpatch
  clang-19-static      clang-19 -O2 -static-pie -fuse-ld=lld
  clang-19-large       clang-19 -O1 -mcmodel=large
  clang-19-instrument  clang-19 -O2 -finstrument-functions-after-inlining
  clang-19-silent      clang-19 -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables
  clang-19-lto         clang-19 -O3 -flto=thin -fuse-ld=lld -Wl,--icf=all
  clang-19-sls         clang-19 -O2 -mharden-sls=all
`

// languageBuilds are builds of programs in testdata/languages: a name, the program's language, a compiler,
// and its options. OUT and IN are replaced by the names of files.
const languageBuilds = `
  fortran-O0       f90 gfortran -O0
  fortran-O2       f90 gfortran -O2
  fortran-O3       f90 gfortran -O3
  fortran-arrays   f90 gfortran -O2 -fstack-arrays -fcheck=all -march=x86-64-v3
  fortran-static   f90 gfortran -Ofast -static
  ada-O0           adb gnatmake -q -f -O0 -o OUT IN
  ada-O2           adb gnatmake -q -f -O2 -o OUT IN
  ada-O3           adb gnatmake -q -f -O3 -o OUT IN
  ada-checked      adb gnatmake -q -f -O1 -gnato -fstack-check -o OUT IN
  d-gdc-O0         d   gdc -O0
  d-gdc-O2         d   gdc -O2
  d-gdc-Os         d   gdc -Os -fomit-frame-pointer
  d-ldc-O2         d   ldc2 -O2 -of=OUT IN
  d-ldc-O0         d   ldc2 -O0 -of=OUT IN
  rust-debug       rs  rustc -o OUT IN
  rust-O           rs  rustc -O -o OUT IN
  rust-frames      rs  rustc -C opt-level=z -C force-frame-pointers=yes -o OUT IN
  rust-lto         rs  rustc -C opt-level=3 -C lto=fat -C codegen-units=1 -C target-cpu=x86-64-v3 -o OUT IN
  rust-abort       rs  rustc -C opt-level=s -C force-unwind-tables=no -C panic=abort -o OUT IN
  pascal-O2        pas fpc -O2 -oOUT IN
  pascal-O4        pas fpc -O4 -gw -oOUT IN
  ocaml            ml  ocamlopt -o OUT IN
  ocaml-unsafe     ml  ocamlopt -O3 -unsafe -inline 100 -o OUT IN
  go-gccgo         go  gccgo-12 -O2 -static-libgo
  go               go  go build -o OUT IN
  c++-g++-11-O1    cc  g++-11 -std=c++20 -O1
  c++-g++-11-O3    cc  g++-11 -std=c++20 -O3
  c++-g++-O2       cc  g++ -std=c++20 -O2 -fno-plt
  c++-g++-thunks   cc  g++ -std=c++20 -O2 -mfunction-return=thunk-inline -mindirect-branch=thunk-inline
  c++-g++-lto      cc  g++ -std=c++20 -O2 -static -flto
  c++-clang-16-Os  cc  clang++-16 -std=c++20 -Os -fno-omit-frame-pointer
  c++-clang-19-O0  cc  clang++-19 -std=c++20 -stdlib=libstdc++ -O0
* c++-clang-19-O2  cc  clang++-19 -std=c++20 -stdlib=libstdc++ -O2
  c++-clang-19-all cc  clang++-19 -std=c++20 -O2 -mretpoline -fbasic-block-sections=all -fuse-ld=lld
`

// parse reads a table of builds, or the file of -builds instead.
func parse(t *testing.T, table string) (out []build) {
	if *other != "" {
		table = string(must.Get(os.ReadFile(*other))(t))
	}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		line, few := strings.CutPrefix(strings.TrimSpace(line), "*")
		words := strings.Fields(line)
		out = append(out, build{words[0], few, words[1:]})
	}
	return out
}

// compile builds source in a folder of its own and returns the program.
func (b *build) compile(t *testing.T, name, source string) string {
	t.Helper()
	b.need(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, name), filepath.Join(dir, "program")
	must.Do(t, os.WriteFile(in, []byte(source), 0o600))
	line := strings.Join(b.cc, "\n")
	if !strings.Contains(line, "OUT") {
		line += "\n-w\n-o\nOUT\nIN"
	}
	args := strings.Split(strings.NewReplacer("OUT", out, "IN", in).Replace(line), "\n")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	must.Run(t, cmd)
	return out
}

// most returns how many points of a random program are compared.
func most() int {
	switch {
	case *points > 0:
		return *points
	case *all:
		return 10_000
	}
	return 1500
}

// few returns the options for a random program: every fifth instruction, unless -every is set, and at most
// most() points.
func few(bin string) Options {
	o := options(bin)
	o.Max = most()
	if *every == 0 {
		o.Every = 5
	}
	return o
}

// stepFew walks at few instructions of a program.
func stepFew(t *testing.T, bin string) {
	o := few(bin)
	j := NewJudge()
	j.Guess = true // for what runs before main without unwind data, and whole builds without
	must.Do(t, Run(exec.Command(bin), o, j.Visit))
	note(t, &j.Tally)
	expect.True(t, j.SureWrong == 0 && j.Points >= 1000, "wrong without doubt:\n%s", Worst(j.Bad, 30))
	if len(j.Doubts) > 0 || len(j.Ends) > 0 {
		t.Logf("doubtful and wrong:\n%sends:\n%s", Worst(j.Doubts, 4), Worst(j.Ends, 4))
	}
}

// eachRandom steps the builds of a table. Each build has a random program of its own.
func eachRandom(t *testing.T, table string, step func(t *testing.T, b *build, source string)) {
	list := parse(t, table)
	run := map[string]uint64{}
	for i := range list {
		run[list[i].name] = *first + uint64(i)
	}
	each(t, list, func(t *testing.T, b *build) {
		source := filepath.Join(t.TempDir(), "random.c")
		must.Do(t, os.WriteFile(source, []byte(randomC(run[b.name], 40)), 0o600))
		step(t, b, source)
	})
}

// framePointerBuilds keep a frame pointer, which the unwind data needs.
const framePointerBuilds = `
  gcc-O0          gcc -O0
* gcc-O2          gcc -O2 -fno-omit-frame-pointer
  gcc-O3          gcc -O3 -fno-omit-frame-pointer -march=x86-64-v3
  gcc-Os          gcc -Os -fno-omit-frame-pointer
  gcc-O1          gcc -O1 -fno-omit-frame-pointer -fcf-protection=none
  gcc-protector   gcc -O2 -fno-omit-frame-pointer -fstack-protector-all -fstack-clash-protection
  gcc-realign     gcc -O2 -fno-omit-frame-pointer -mstackrealign
  gcc-no-shrink   gcc -O2 -fno-omit-frame-pointer -fno-shrink-wrap
  gcc-11-O2       gcc-11 -O2 -fno-omit-frame-pointer -fno-plt
* clang-16-O2     clang-16 -O2 -fno-omit-frame-pointer
  clang-15-Os     clang-15 -Os -fno-omit-frame-pointer
  clang-16-O0     clang-16 -O0
`

// TestBlind walks from sp and ip alone. No frame may be wrong. A walk may end at a frame pointer that the
// code does not show.
func TestBlind(t *testing.T) {
	eachRandom(t, framePointerBuilds, func(t *testing.T, b *build, source string) {
		bin := b.make(t, source)
		o, j := few(bin), NewJudge()
		j.Blind = true
		must.Do(t, Run(exec.Command(bin), o, j.Visit))
		note(t, &j.Tally)
		expect.True(t, j.SureWrong+j.Doubtful == 0 && j.Complete*5 >= j.Points*2, "wrong:\n%s%sends:\n%s",
			Worst(j.Bad, 30), Worst(j.Doubts, 4), Worst(j.Ends, 4))
	})
}

// TestRandom walks at the instructions of random programs.
func TestRandom(t *testing.T) {
	eachRandom(t, randomBuilds, func(t *testing.T, b *build, source string) { stepFew(t, b.make(t, source)) })
}

// shapes returns the source of a build whose first word is a language.
func (b *build) shapes() string {
	return filepath.Join("testdata/languages", b.cc[0], "shapes."+b.cc[0])
}

// TestLanguages walks at the instructions of programs in other languages, with exceptions, coroutines, nested
// functions, and their runtimes.
func TestLanguages(t *testing.T) {
	each(t, parse(t, languageBuilds), func(t *testing.T, b *build) {
		of := build{b.name, b.few, b.cc[1:]}
		sources := must.Get(filepath.Glob(filepath.Dir(b.shapes()) + "/*"))(t)
		must.Equal(t, len(sources) > 0, true, "%s: no sources", b.shapes())
		for _, path := range sources {
			name := filepath.Base(path)
			t.Run(name, func(t *testing.T) {
				stepFew(t, of.compile(t, name, string(must.Get(os.ReadFile(path))(t))))
			})
		}
	})
}
