package category

import (
	"fmt"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"strings"
	"testing"
)

// Stacks of each category, leaf first, as "class:name:module" of each frame.
func TestStack(t *testing.T) {
	const clr = "libcoreclr.so"
	for _, c := range []struct {
		want   Category
		role   string
		frames string
	}{
		{User, "", "managed:App.Run:App native:main:app"},
		{Library, "", "managed:String.Concat:System.Private.CoreLib managed:App.Run:App"},
		{Library, "", "managed:System.String.Concat: managed:App.Run:App"},
		{Library, "", "native:read:libc.so.6 runtime:SystemNative_Read:libSystem.Native.so stub:IL_STUB_PInvoke: managed:File.Read:System.Private.CoreLib"},
		{Native, "", "native:deflate:libz.so stub:IL_STUB_PInvoke: managed:App.Zip:App"},
		{Native, "", "kernel:[kernel]: native:write:libc.so.6 managed:App.Zip:App"},
		{GC, "", "native:memset:libc.so.6 runtime:WKS::gc_heap::mark_phase(int):" + clr +
			" runtime:libcoreclr.so+0x12:" + clr + " managed:App.Run:App"},
		{GC, "", "runtime:libclrgc.so+0x1:libclrgc.so managed:App.Run:App"},
		{GC, "[GC]", "runtime:libcoreclr.so+0x12:" + clr + " native:start_thread:libc.so.6"},
		{JIT, "", "native:malloc:libc.so.6 runtime:libclrjit.so+0x1:libclrjit.so runtime:libcoreclr.so+0x2:" +
			clr + " managed:App.Run:App"},
		{JIT, "[tiered compilation]", "runtime:libcoreclr.so+0x2:" + clr + " native:start_thread:libc.so.6"},
		{Loading, "", "runtime:libcoreclr.so+0x2:" + clr + " runtime:ClassLoader::LoadTypeHandleForTypeKey:" +
			clr + " managed:App.Run:App"},
		{Runtime, "", "native:memset:libc.so.6 runtime:libcoreclr.so+0x2:" + clr + " managed:App.Run:App"},
		{Runtime, "", "runtime:libcoreclr.so+0x2:" + clr + " gap:no-info: managed:App.Run:App"},
		{Waiting, "[GC]", "native:pthread_cond_wait:libc.so.6 runtime:libcoreclr.so+0x12:" + clr},
		{Waiting, "", "kernel:[kernel]: native:epoll_wait:libc.so.6 managed:App.Run:App"},
		{Waiting, "", "managed:System.Threading.Monitor.Wait(object): managed:App.Run:App"},
		{User, "", "managed:App.Run:App managed:System.Threading.Thread.Join: native:main:app"},
		{Waiting, "", "native:__GI___lll_lock_wait:libc.so.6 native:__pthread_mutex_cond_lock:libc.so.6 managed:App.Run:App"},
		{Spinning, "", "managed:System.Threading.SpinWait.SpinOnceCore(int):System.Private.CoreLib managed:System.Threading.ManualResetEventSlim.Wait:System.Private.CoreLib managed:App.Run:App"},
		{Spinning, "", "native:sched_yield:libc.so.6 runtime:libcoreclr.so+0x2:" + clr +
			" managed:System.Threading.Thread.Yield:System.Private.CoreLib managed:System.Threading.SpinWait.SpinOnce: managed:App.Run:App"},
		{Spinning, "", "native:clock_nanosleep:libc.so.6 runtime:libcoreclr.so+0x2:" + clr +
			" managed:System.Threading.Thread.Sleep: managed:System.Threading.SpinWait.SpinOnceCore: managed:App.Run:App"},
		{Waiting, "", "native:clock_nanosleep:libc.so.6 managed:System.Threading.Thread.Sleep: managed:App.Run:App managed:System.Threading.SpinWait.SpinUntil:"},
		{User, "", "managed:App.Spin:App managed:System.Threading.SpinWait.SpinUntil:System.Private.CoreLib managed:App.Run:App"},
		{Native, "", "native:on_signal:libc.so.6 native:poll:libc.so.6 managed:App.Run:App"},
		{Unknown, "", "gap:no-info: managed:App.Run:App"},
		{Unknown, "", "unsampled:[short-threads]: unsampled:[not-sampled]:"},
		{Unknown, "", ""},
	} {
		var kinds []Kind
		for f := range strings.SplitSeq(c.frames, " ") {
			if class, rest, ok := strings.Cut(f, ":"); ok {
				at := strings.LastIndex(rest, ":")
				kinds = append(kinds, Frame(class, rest[:at], rest[at+1:]))
			}
		}
		if got := Stack(len(kinds), func(i int) Kind { return kinds[i] }, c.role); got != c.want {
			t.Errorf("%s %s: %v, want %v (%s)", c.role, c.frames, got, c.want, fmt.Sprint(kinds))
		}
	}
	expect.Equal(t, len(Names), int(Unknown)+1, "names")
}
