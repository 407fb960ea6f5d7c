package stepper

import (
	"testing"

	"github.com/seedwalk/seedwalk/unwind/module"
)

// randomImages are builds of random Windows images of x86-64, in the format of randomBuilds.
const randomImages = `
  mingw-O1             x86_64-w64-mingw32-gcc -O1
  mingw-O2             x86_64-w64-mingw32-gcc -O2 -fno-ipa-ra
  mingw-avx512         x86_64-w64-mingw32-gcc -O3 -mavx512f -mprefer-vector-width=512 -mforce-drap
  mingw-v3             x86_64-w64-mingw32-gcc -O3 -march=x86-64-v3 -fno-omit-frame-pointer
  mingw-outgoing       x86_64-w64-mingw32-gcc -Os -maccumulate-outgoing-args
  mingw-Oz             x86_64-w64-mingw32-gcc -Oz -fipa-pta
  mingw-Og             x86_64-w64-mingw32-gcc -Og -fno-dwarf2-cfi-asm
  mingw-O0             x86_64-w64-mingw32-gcc -O0 -mno-push-args
  mingw-realign        x86_64-w64-mingw32-gcc -O2 -mstackrealign -mincoming-stack-boundary=3
  mingw-thunk          x86_64-w64-mingw32-gcc -O2 -mfunction-return=thunk -mindirect-branch=thunk -fcf-protection=none
  mingw-sls            x86_64-w64-mingw32-gcc -O2 -mharden-sls=all -fcf-protection=full
  mingw-stack-check    x86_64-w64-mingw32-gcc -O1 -fstack-check -mstack-arg-probe
  mingw-no-shrink-wrap x86_64-w64-mingw32-gcc -O2 -fno-shrink-wrap -fno-tree-tail-merge -fno-reorder-blocks
  mingw-sections       x86_64-w64-mingw32-gcc -O2 -ffunction-sections -freorder-blocks-and-partition
  mingw-large          x86_64-w64-mingw32-gcc -O2 -mcmodel=large -mtune=atom
  mingw-bdver2         x86_64-w64-mingw32-gcc -O2 -mtune=bdver2 -fno-schedule-insns2
  clang-13-gnu         clang-13 -O2 --target=x86_64-w64-windows-gnu
  clang-14-gnu         clang-14 -Os --target=x86_64-w64-windows-gnu -fno-optimize-sibling-calls
  clang-15-gnu         clang-15 -O3 --target=x86_64-w64-windows-gnu -march=x86-64-v3
  clang-16-gnu         clang-16 -O1 --target=x86_64-w64-windows-gnu -mlvi-hardening
  clang-16-slh         clang-16 -O2 --target=x86_64-w64-windows-gnu -mspeculative-load-hardening
* clang-19-gnu         clang-19 -O2 --target=x86_64-w64-windows-gnu
  clang-19-O0          clang-19 -O0 --target=x86_64-w64-windows-gnu
  clang-19-avx512      clang-19 -O3 --target=x86_64-w64-windows-gnu -mavx512f -mprefer-vector-width=512
  clang-19-frames      clang-19 -O3 --target=x86_64-w64-windows-gnu -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
  clang-19-align       clang-19 -O2 --target=x86_64-w64-windows-gnu -mstack-alignment=64 -mstackrealign
  clang-19-retpoline   clang-19 -O2 --target=x86_64-w64-windows-gnu -mretpoline
  clang-19-zeroed      clang-19 -O2 --target=x86_64-w64-windows-gnu -fzero-call-used-regs=used
  clang-19-sls         clang-19 -O1 --target=x86_64-w64-windows-gnu -mharden-sls=all
  clang-13-msvc        clang-13 -O2 --target=x86_64-pc-windows-msvc -ffreestanding -mno-stack-arg-probe
  clang-16-msvc        clang-16 -Os --target=x86_64-pc-windows-msvc -ffreestanding -mno-stack-arg-probe
  clang-19-msvc        clang-19 -O3 --target=x86_64-pc-windows-msvc -ffreestanding -mno-stack-arg-probe -march=x86-64-v3
  clang-19-hotpatch    clang-19 -O2 --target=x86_64-pc-windows-msvc -ffreestanding -mno-stack-arg-probe -fms-hotpatch
  mingw-zeroed         x86_64-w64-mingw32-gcc -O2 -fzero-call-used-regs=all
  mingw-thunk-inline   x86_64-w64-mingw32-gcc -O3 -mindirect-branch=thunk-inline
  mingw-zeroed-k8      x86_64-w64-mingw32-gcc -O2 -fzero-call-used-regs=all -mtune=k8
  mingw-zeroed-return  x86_64-w64-mingw32-gcc -O2 -fzero-call-used-regs=all -mfunction-return=thunk-inline
  clang-19-lvi         clang-19 -O2 --target=x86_64-w64-windows-gnu -mlvi-hardening
`

// randomImages64 are builds of random Windows images of ARM64.
const randomImages64 = `
  clang-13-gnu      clang-13 --target=aarch64-w64-windows-gnu -O2
  clang-13-pac      clang-13 --target=aarch64-w64-windows-gnu -O2 -mbranch-protection=pac-ret+b-key
  clang-14-gnu      clang-14 --target=aarch64-w64-windows-gnu -O1 -fno-optimize-sibling-calls
  clang-15-gnu      clang-15 --target=aarch64-w64-windows-gnu -O3
  clang-16-gnu      clang-16 --target=aarch64-w64-windows-gnu -Os -fomit-frame-pointer
  clang-16-pac      clang-16 --target=aarch64-w64-windows-gnu -O2 -mbranch-protection=pac-ret+leaf+b-key
* clang-19-gnu      clang-19 --target=aarch64-w64-windows-gnu -O2
  clang-19-O0       clang-19 --target=aarch64-w64-windows-gnu -O0
  clang-19-O3       clang-19 --target=aarch64-w64-windows-gnu -O3 -mcpu=neoverse-n1 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
  clang-19-outline  clang-19 --target=aarch64-w64-windows-gnu -Oz -moutline
  clang-19-pac      clang-19 --target=aarch64-w64-windows-gnu -Os -mbranch-protection=bti+pac-ret+b-key
  clang-19-sls      clang-19 --target=aarch64-w64-windows-gnu -O2 -mharden-sls=all -fzero-call-used-regs=used
  clang-19-align    clang-19 --target=aarch64-w64-windows-gnu -O1 -mstack-alignment=64
  clang-13-msvc     clang-13 --target=aarch64-pc-windows-msvc -O1
  clang-16-msvc     clang-16 --target=aarch64-pc-windows-msvc -O3 -fomit-frame-pointer
  clang-19-msvc     clang-19 --target=aarch64-pc-windows-msvc -O2 -mharden-sls=all
  clang-19-msvc-O1  clang-19 --target=aarch64-pc-windows-msvc -O1 -fno-inline
`

// randomBuilds64 are builds of random AArch64 programs.
const randomBuilds64 = `
  gcc-O0            aarch64-linux-gnu-gcc -O0
  gcc-O1            aarch64-linux-gnu-gcc -O1 -fomit-frame-pointer
* gcc-O2            aarch64-linux-gnu-gcc -O2 -fno-ipa-ra
  gcc-Og            aarch64-linux-gnu-gcc -Og -fno-dwarf2-cfi-asm
  gcc-sve           aarch64-linux-gnu-gcc -O3 -march=armv8.2-a+sve
  gcc-Oz            aarch64-linux-gnu-gcc -Oz -fipa-pta
  gcc-leaf-frames   aarch64-linux-gnu-gcc -O3 -mno-omit-leaf-frame-pointer -mcpu=neoverse-n1
  gcc-pac-b         aarch64-linux-gnu-gcc -O2 -mbranch-protection=pac-ret+leaf+b-key -fomit-frame-pointer
  gcc-clash         aarch64-linux-gnu-gcc -O1 -fstack-clash-protection -fstack-protector-all
  gcc-stack-check   aarch64-linux-gnu-gcc -O2 -fstack-check
  gcc-sls           aarch64-linux-gnu-gcc -O2 -mharden-sls=all
  gcc-patchable     aarch64-linux-gnu-gcc -O2 -fpatchable-function-entry=8,3 -finstrument-functions
  gcc-no-shrink     aarch64-linux-gnu-gcc -O2 -fno-shrink-wrap -fno-tree-tail-merge -fno-reorder-blocks -fomit-frame-pointer
  gcc-zeroed        aarch64-linux-gnu-gcc -O2 -fzero-call-used-regs=all
  gcc-debug-frame   aarch64-linux-gnu-gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables
  gcc-silent        aarch64-linux-gnu-gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables
  gcc-lto           aarch64-linux-gnu-gcc -O3 -flto -fwhole-program
  gcc-large         aarch64-linux-gnu-gcc -O2 -mcmodel=large
  clang-13-O2       clang-13 --target=aarch64-linux-gnu -O2
  clang-14-Os       clang-14 --target=aarch64-linux-gnu -Os -fno-optimize-sibling-calls
  clang-15-O3       clang-15 --target=aarch64-linux-gnu -O3 -mcpu=a64fx
  clang-16-O1       clang-16 --target=aarch64-linux-gnu -O1 -fomit-frame-pointer
  clang-16-slh      clang-16 --target=aarch64-linux-gnu -O2 -mspeculative-load-hardening
  clang-19-O2       clang-19 --target=aarch64-linux-gnu -O2 -fasynchronous-unwind-tables
  clang-19-O0       clang-19 --target=aarch64-linux-gnu -O0
  clang-19-sync     clang-19 --target=aarch64-linux-gnu -O3 -funwind-tables -fno-asynchronous-unwind-tables -fomit-frame-pointer
  clang-19-outline  clang-19 --target=aarch64-linux-gnu -Oz -moutline
  clang-19-clash    clang-19 --target=aarch64-linux-gnu -O2 -fstack-clash-protection -fstack-protector-all
  clang-19-pac      clang-19 --target=aarch64-linux-gnu -O2 -mbranch-protection=pac-ret+leaf+b-key
  clang-19-sve      clang-19 --target=aarch64-linux-gnu -O3 -march=armv9-a
  clang-19-zeroed   clang-19 --target=aarch64-linux-gnu -O2 -fzero-call-used-regs=used -mharden-sls=all
  clang-19-frames   clang-19 --target=aarch64-linux-gnu -O3 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
  clang-19-align    clang-19 --target=aarch64-linux-gnu -O1 -mstack-alignment=64
`

// languageBuilds64 are builds of AArch64 programs in the format of languageBuilds.
const languageBuilds64 = `
  fortran-O0    f90 aarch64-linux-gnu-gfortran -O0
  fortran-O3    f90 aarch64-linux-gnu-gfortran -O3 -fcheck=all
  d-gdc-O0      d   aarch64-linux-gnu-gdc-12 -O0
  d-gdc-O2      d   aarch64-linux-gnu-gdc-12 -O2 -fomit-frame-pointer
  c++-g++-O0    cc  aarch64-linux-gnu-g++ -std=c++20 -O0
  c++-g++-O2    cc  aarch64-linux-gnu-g++ -std=c++20 -O2
  c++-g++-pac   cc  aarch64-linux-gnu-g++ -std=c++20 -O3 -mbranch-protection=pac-ret+leaf -fomit-frame-pointer
  c++-clang-16  cc  clang++-16 --target=aarch64-linux-gnu -std=c++20 -Os
  c++-clang-19  cc  clang++-19 --target=aarch64-linux-gnu -std=c++20 -O2 -moutline
`

// TestRandomImages walks at the instructions of random Windows images.
func TestRandomImages(t *testing.T) {
	eachRandom(t, randomImages, func(t *testing.T, b *build, source string) {
		b.stepImage(t, source, "-fasynchronous-unwind-tables", true, 0)
	})
}

// TestRandomImagesARM64 walks at the instructions of random Windows images of ARM64.
func TestRandomImagesARM64(t *testing.T) {
	eachRandom(t, randomImages64, func(t *testing.T, b *build, source string) {
		b.stepImage64(t, source, "-funwind-tables", true, 0)
	})
}

// TestRandomARM64 walks at the instructions of random AArch64 programs.
func TestRandomARM64(t *testing.T) {
	eachRandom(t, randomBuilds64, func(t *testing.T, b *build, source string) {
		b.step64(t, source, 0, func(*module.Module) {}, false)
	})
}

// TestLanguagesARM64 walks at the instructions of AArch64 programs in other languages.
func TestLanguagesARM64(t *testing.T) {
	each(t, parse(t, languageBuilds64), func(t *testing.T, b *build) {
		of := build{b.name, b.few, b.cc[1:]}
		of.step64(t, b.shapes(), 0, func(*module.Module) {}, false)
	})
}
