package clr

import (
	"testing"
	"unsafe"
)

func TestReadableName(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "T.Spin", "T.Spin"},
		{"namespace", "System.Threading.Thread.Sleep", "System.Threading.Thread.Sleep"},
		{"nested", "A.Outer+Inner.Run", "A.Outer.Inner.Run"},
		{"constructor", "A.B..ctor", "A.B..ctor"},
		{"static constructor of nested", "A.B+C..cctor", "A.B.C..cctor"},
		{"generic type", "System.Collections.Generic.List`1.Add", "System.Collections.Generic.List<T>.Add"},
		{"generic of two", "D`2+E.Get", "D<T1,T2>.E.Get"},
		{"generic of eleven", "F`11.Get", "F<11>.Get"},
		{"lambda", "Demo+<>c.<Main>b__3_0", "Demo.Main.lambda_3_0"},
		{"closure", "Demo+<>c__DisplayClass5_0.<Run>b__1", "Demo.Run.lambda_1"},
		{"local function", "Demo.<Main>g__Add|0_1", "Demo.Main.Add"},
		{"async", "Demo+<RunAsync>d__5.MoveNext", "Demo.RunAsync.MoveNext"},
		{"lambda of mcs", "T+<Main>c__AnonStorey0.<>m__1", "T..lambda_1"},
		{"static lambda of mcs", "T.<Lambda>m__13", "T.Lambda.lambda_13"},
		{"async of mcs", "Demo+<Work>c__async0.MoveNext", "Demo.Work.MoveNext"},
		{"global", "Main", "Main"},
		{"odd bracket", "A.<x", "A.<x"},
		{"interface dots in brackets", "A.<I.F>b__0", "A.I.F.lambda_0"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ReadableName(c.in); got != c.want {
				t.Errorf("ReadableName(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestHRESULT(t *testing.T) {
	if got := CORPROF_E_STACKSNAPSHOT_UNSAFE.String(); got != "CORPROF_E_STACKSNAPSHOT_UNSAFE" {
		t.Error(got)
	}
	if got := HRESULT(0x80131399).String(); got != "HRESULT 0x80131399" {
		t.Error(got)
	}
	if !E_FAIL.Failed() || S_FALSE.Failed() {
		t.Error("Failed looks at the wrong bit")
	}
}

// C fills arrays of SnapshotFrame: its layout is part of the interface.
func TestSnapshotFrameLayout(t *testing.T) {
	if got := unsafe.Sizeof(SnapshotFrame{}); got != 112 {
		t.Errorf("SnapshotFrame is %d bytes, C writes 112", got)
	}
}

func TestSnapshotFrameRegisters(t *testing.T) {
	f := SnapshotFrame{IP: 1, SP: 2, FP: 3, Saved: [10]uint64{4, 12, 13, 14, 15}}
	r := f.AMD64()
	want := map[int]uint64{3: 4, 4: 2, 5: 3, 12: 12, 13: 13, 14: 14, 15: 15}
	for i, v := range r.GPR {
		if v != want[i] {
			t.Errorf("register %d = %d, want %d", i, v, want[i])
		}
		if known := r.Known>>i&1 == 1; known != (want[i] != 0) {
			t.Errorf("register %d known = %v", i, known)
		}
	}
}
