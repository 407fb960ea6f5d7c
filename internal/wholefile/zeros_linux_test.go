//go:build amd64 || arm64

package wholefile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// After a file is cut off, its lost pages read as zeros, and the others are unchanged. bytes.Clone faults in
// Go's runtime. Who maps the file later gets its content, not the zeros.
func TestCutOff(t *testing.T) {
	ReadCutAsZeros()
	page := os.Getpagesize()
	path := filepath.Join(tempdir.New(t), "f")
	whole := bytes.Repeat([]byte("x"), 3*page)
	must.Do(t, os.WriteFile(path, whole, 0o600))
	m := must.Get(MapShared(path, 1<<20))(t)
	must.Do(t, os.Truncate(path, int64(page)))
	before := ZeroPages()
	got := bytes.Clone(m.Data)
	expect.Equal(t, ZeroPages()-before, 2, "pages of zeros")
	expect.True(t, bytes.Equal(got, append(whole[:page:page], make([]byte, 2*page)...)), "other bytes")
	must.Do(t, os.WriteFile(path, whole, 0o600))
	next := must.Get(MapShared(path, 1<<20))(t)
	expect.True(t, bytes.Equal(next.Data, whole), "the next user gets zeros")
	runtime.KeepAlive(m)
}

// If the handler cannot map zeros, Go's own handler gets the fault.
func TestOtherFaults(t *testing.T) {
	ReadCutAsZeros()
	path := filepath.Join(tempdir.New(t), "f")
	must.Do(t, os.WriteFile(path, []byte("content"), 0o600))
	m := must.Get(MapShared(path, 100))(t)
	must.Do(t, os.Truncate(path, 0))
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	usual := pageSize
	pageSize = 1 // the kernel refuses to map anything at an address inside of a page
	fault := func() (fault any) {
		defer func() { fault = recover() }()
		return m.Data[5]
	}()
	pageSize = usual
	_, ok := fault.(runtime.Error)
	expect.True(t, ok, "%v", fault)
	expect.Equal(t, m.Data[5], 0)
}
