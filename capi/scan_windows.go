//go:build cgo

package main

/*
#include <stdint.h>
#include <windows.h>

static int read_own(void *to, uint64_t from, size_t bytes)
{
	return ReadProcessMemory(GetCurrentProcess(), (const void *)(uintptr_t)from, to, bytes, NULL);
}
*/
import "C"

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// newScanner reads the list of this process's loader.
func (in *instance) newScanner() scanner {
	images := live.NewImages(loaded)
	in.runtime.images = images
	return func() *module.Table { return images.Table() }
}

// ownCode reads this process's memory without a fault, a lock, or an allocation. Even code that another
// thread frees meanwhile is safe to read.
type ownCode struct{}

// ReadAt implements memory.Reader.
func (ownCode) ReadAt(b []byte, addr uint64) bool {
	return len(b) == 0 || C.read_own(unsafe.Pointer(&b[0]), C.uint64_t(addr), C.size_t(len(b))) != 0
}

// newCode returns the reader for the code before a seed.
func newCode() memory.Reader { return ownCode{} }

// tables are the system's function tables, where the runtime registers its code: managed.Calls. They are used
// after the images were scanned, which identifies precompiled code.
type tables struct {
	live.Windows
	images *live.Images
	steps  *managed.Tables
}

// Precompiled implements managed.Calls.
func (t *tables) Precompiled(pc uint64) (managed.Image, bool) {
	m := t.images.Precompiled(pc)
	if m == nil {
		return managed.Image{}, false
	}
	return managed.Image{Base: m.Bias, Table: m.PE.AMD64()}, true
}

// found drops the data of code that may be gone.
func (t *tables) found(in *instance) {
	if in.scanned == nil || in.walker.Arch() != context.ArchAMD64 {
		in.merger.SetManaged(nil)
		in.witness.Methods = nil
		return
	}
	if t.steps == nil {
		t.steps = managed.New(managed.System{Calls: t})
	}
	t.steps.Forget()
	in.merger.SetManaged(t.steps)
	in.witness.Methods = t.steps
}

func (t *tables) clear() {}

// merging copies the unwind data of the reported methods. The seeds of later samples are checked by them.
func (t *tables) merging(in *instance) {
	if in.witness.Methods != nil {
		t.steps.Learn(in.capture.Frames)
	}
}

// snapshotTries bounds the attempts to list the images.
const snapshotTries = 16

// loaded lists the loaded images. Source: Win32, "Tool Help".
func loaded() (out []live.Loaded) {
	var snapshot windows.Handle
	err := error(windows.ERROR_BAD_LENGTH) // an image was loaded or unloaded meanwhile: retry
	for tries := 0; err == windows.ERROR_BAD_LENGTH && tries < snapshotTries; tries++ {
		snapshot, err = windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPMODULE,
			windows.GetCurrentProcessId())
	}
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(snapshot)
	e := windows.ModuleEntry32{Size: uint32(unsafe.Sizeof(windows.ModuleEntry32{}))}
	for err = windows.Module32First(snapshot, &e); err == nil; err = windows.Module32Next(snapshot, &e) {
		base := uint64(e.ModBaseAddr)
		out = append(out, live.Loaded{Base: base, Size: e.ModBaseSize, Stamp: stamp(base),
			Path: windows.UTF16ToString(e.ExePath[:])})
	}
	return out
}

// stamp returns an image's time stamp, which distinguishes two builds of a file; 0 if the image is gone.
func stamp(base uint64) uint32 {
	h, _ := pe.ReadHeader(func(rva uint32, n int) ([]byte, bool) {
		b := make([]byte, n)
		return b, n > 0 && windows.ReadProcessMemory(windows.CurrentProcess(), uintptr(base)+uintptr(rva),
			&b[0], uintptr(n), nil) == nil
	}, "")
	return h.Stamp()
}
