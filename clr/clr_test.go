package clr

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
)

func TestReadableName(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "T.Spin", "T.Spin"},
		{"namespace", "System.Threading.Thread.Sleep", "System.Threading.Thread.Sleep"},
		{"nested", "A.Outer+Inner.Run", "A.Outer.Inner.Run"},
		{"separated", "A.Outer+Inner::Run", "A.Outer.Inner.Run"},
		{"constructor", "A.B..ctor", "A.B..ctor"},
		{"constructor, separated", "A.B::.ctor", "A.B..ctor"},
		{"static constructor of nested", "A.B+C..cctor", "A.B.C..cctor"},
		{"constructor of a generic type", "A.B`1..ctor", "A.B<T>..ctor"},
		{"generic type", "System.Collections.Generic.List`1.Add", "System.Collections.Generic.List<T>.Add"},
		{"generic of two", "D`2+E.Get", "D<T1,T2>.E.Get"},
		{"generic of eleven", "F`11.Get", "F<11>.Get"},
		{"lambda", "Demo+<>c.<Main>b__3_0", "Demo.Main (lambda)"},
		{"second lambda", "Demo+<>c.<Main>b__3_1", "Demo.Main (lambda 1)"},
		{"closure", "Demo+<>c__DisplayClass5_0.<Run>b__1", "Demo.Run (lambda 1)"},
		{"closure of a generic type", "Demo`1+<>c__DisplayClass5_0`1::<Run>b__1", "Demo<T>.Run (lambda 1)"},
		{"edited lambda", "Demo+<>c.<Main>b__3_2#1", "Demo.Main (lambda 2)"},
		{"local function", "Demo.<Main>g__Add|0_1", "Demo.Main.Add"},
		{"async", "Demo+<RunAsync>d__5.MoveNext (async)", "Demo.RunAsync (async)"},
		{"iterator", "Demo+<Items>d__5`1::MoveNext (iterator)", "Demo.Items (iterator)"},
		{"state machine of either kind", "Demo+<RunAsync>d__5.MoveNext", "Demo.RunAsync.MoveNext"},
		{"another method of a state machine", "Demo+<RunAsync>d__5::SetStateMachine", "Demo.RunAsync.SetStateMachine"},
		{"async lambda", "Web+<>c__DisplayClass0_0+<<Main>b__5>d::MoveNext (async)", "Web.Main (async lambda 5)"},
		{"first async lambda", "Web+<>c+<<Main>b__0_0>d::MoveNext (async)", "Web.Main (async lambda)"},
		{"async lambda, kind unknown", "Web+<<Main>b__5>d.MoveNext", "Web.Main (lambda 5).MoveNext"},
		{"async local function", "HttpProtocol+<<FireOnCompleted>g__ProcessEvents|242_0>d::MoveNext (async)", "HttpProtocol.FireOnCompleted.ProcessEvents (async)"},
		{"async explicit implementation", "A+<System-IO-IThing<T>-Run>d__3::MoveNext (async)", "A.IThing<T>.Run (async)"},
		{"lambda of mcs", "T+<Main>c__AnonStorey0.<>m__1", "T.Main (lambda 1)"},
		{"static lambda of mcs", "T.<Lambda>m__13", "T.Lambda (lambda 13)"},
		{"async of mcs", "Demo+<Work>c__async0.MoveNext", "Demo.Work.MoveNext"},
		{"iterator of mcs", "Demo+<Work>c__Iterator0::MoveNext (iterator)", "Demo.Work (iterator)"},
		{"explicit in a generic type", "KestrelConnection`1.System.Threading.IThreadPoolWorkItem.Execute", "KestrelConnection<T>.IThreadPoolWorkItem.Execute"},
		{"explicit", "Conn::System.Threading.IThreadPoolWorkItem.Execute", "Conn.IThreadPoolWorkItem.Execute"},
		{"explicit of a generic interface", "ImmutableArray`1::System.Collections.Generic.IEnumerable<T>.GetEnumerator", "ImmutableArray<T>.IEnumerable<T>.GetEnumerator"},
		{"explicit, arguments with namespaces", "D::A.B.IMap<System.String,C.D[]>.get_Item", "D.IMap<String,D[]>.get_Item"},
		{"top-level statements", "Program::<Main>$", "Program.Main"},
		{"lambda of top-level statements", "Program+<>c::<<Main>$>b__0_4", "Program.Main (lambda 4)"},
		{"local function of top-level statements", "Program::<<Main>$>g__Add|0_0", "Program.Main.Add"},
		{"entry point of an async Main", "Program.<Main>", "Program.Main (entry point)"},
		{"base call", "A.B::<>n__0", "A.B (base call)"},
		{"file-local type", "<Gen>F00AB__Impl::Run", "Impl.Run"},
		{"file-local type in a namespace", "A.B.<Gen_g>F00AB__Impl+C::Run", "A.B.Impl.C.Run"},
		{"anonymous type", "<>f__AnonymousType0`2::ToString", "AnonymousType0<T1,T2>.ToString"},
		{"compiler's own class", "<PrivateImplementationDetails>::Compute", "<PrivateImplementationDetails>.Compute"},
		{"global", "Main", "Main"},
		{"odd bracket", "A.<x", "A.<x"},
		{"odd brackets", "A+<<x>d::<", "A.<<x>d.<"},
		{"interface dots in brackets", "A.<I.F>b__0", "A.I.F (lambda)"},
		{"empty", "", ""},
		{"only signs", "::", ""},
		{"state machine alone", "<M>d__1::MoveNext (async)", "M (async)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ReadableName(c.in); got != c.want {
				t.Errorf("ReadableName(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct {
		name string
		in   MethodName
		want string
	}{
		{"arguments", MethodName{Name: "A.B`1::C", TypeArgs: []string{"int"}}, "A.B<int>.C"},
		{"of both types", MethodName{Name: "A.B`1+D`2::C", TypeArgs: []string{"int", "string", "E[]"}}, "A.B<int>.D<string,E[]>.C"},
		{"too few arguments", MethodName{Name: "A.B`1+D`2::C", TypeArgs: []string{"int", "string"}}, "A.B<int>.D<T1,T2>.C"},
		{"of a type in a generic one", MethodName{Name: "A.B`1+D::C", TypeArgs: []string{"int"}}, "A.B<int>.D.C"},
		{"own", MethodName{Name: "A.B::C", Args: []string{"int", "T"}}, "A.B.C<int,T>"},
		{"overload", MethodName{Name: "A.B::C", Parameters: "(int)"}, "A.B.C(int)"},
		{"constructor", MethodName{Name: "A.B`1::.ctor", TypeArgs: []string{"int"}, Parameters: "()"}, "A.B<int>..ctor()"},
		{"generic overload", MethodName{Name: "A.B::C", Args: []string{"int"}, Parameters: "(T)"}, "A.B.C<int>(T)"},
		{"async overload", MethodName{Name: "A.B+<Run>d__1::MoveNext (async)", Parameters: "(string)"}, "A.B.Run(string) (async)"},
		{"generic iterator", MethodName{Name: "A.B`1+<Items>d__1`1::MoveNext (iterator)", TypeArgs: []string{"int", "string"}}, "A.B<int>.Items<string> (iterator)"},
		{"lambda in a generic type", MethodName{Name: "A`1+<>c__DisplayClass5_0`1::<Run>b__1", TypeArgs: []string{"int", "string"}}, "A<int>.Run (lambda 1)"},
		{"arity of nobody's", MethodName{Name: "A`x::C", TypeArgs: []string{"int"}}, "A<x>.C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.in.Readable(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
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
	r := f.Registers(context.ArchAMD64).AMD64
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

// rsi and rdi are known where a recorder says that they are nonvolatile; no
// other register can be made known that way.
func TestSnapshotFrameWindows(t *testing.T) {
	f := SnapshotFrame{Saved: [10]uint64{5: 6, 6: 7}}
	const both = 1<<context.RSI | 1<<context.RDI
	if r := f.Registers(context.ArchAMD64).AMD64; r.Known&both != 0 {
		t.Errorf("known %#x without the mask", r.Known)
	}
	before := f.Registers(context.ArchAMD64).AMD64.Known
	f.Saved[SavedMask] = ^uint64(0)
	if r := f.Registers(context.ArchAMD64).AMD64; r.Known != before|both || r.GPR[context.RSI] != 6 || r.GPR[context.RDI] != 7 {
		t.Errorf("known %#x, rsi %d, rdi %d", r.Known, r.GPR[context.RSI], r.GPR[context.RDI])
	}
}

// What is put into a frame comes out of it, the nonvolatile registers only.
func TestSnapshotFrameRoundTrip(t *testing.T) {
	regs := context.AMD64{RIP: 99, Known: context.AMD64All}
	for i := range regs.GPR {
		regs.GPR[i] = 100 + uint64(i)
	}
	for _, windows := range []bool{false, true} {
		f := SnapshotFrame{Function: 5, Saved: [10]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
		from := context.FromAMD64(regs)
		f.Store(&from, windows)
		got := f.Registers(context.ArchAMD64).AMD64
		for i, v := range got.GPR {
			if got.Known>>i&1 == 1 && v != regs.GPR[i] {
				t.Errorf("register %d = %d", i, v)
			}
		}
		if got.RIP != 99 || f.Function != 5 || got.Known>>context.RSI&1 == 1 != windows || got.Known>>context.RAX&1 == 1 {
			t.Errorf("windows %v: %+v", windows, got)
		}
	}
}

func TestSnapshotFrameARM64(t *testing.T) {
	regs := context.ARM64{PC: 98, Sp: 96, Known: context.ARM64All}
	for i := range regs.X {
		regs.X[i] = 100 + uint64(i)
	}
	var f SnapshotFrame
	from := context.FromARM64(regs)
	f.Store(&from, false)
	got := f.Registers(context.ArchARM64).ARM64
	if f.IP != 98 || f.SP != 96 || f.FP != 129 || got.PC != 98 || got.Sp != 96 {
		t.Errorf("%+v", f)
	}
	for i, v := range got.X {
		kept := i >= 19 && i <= 29
		if known := got.Known>>i&1 == 1; known != kept || kept && v != regs.X[i] {
			t.Errorf("x%d = %d, known %v", i, v, known)
		}
	}
	if got.Known>>32 != 0 {
		t.Error("d8-d15 are not in a SnapshotFrame")
	}
}

// A constant without a name would be told to a user as a number, and no other table
// would miss it.
func TestEveryHRESULTHasAName(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "clr.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(x ast.Node) bool {
		v, ok := x.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		typ, ok := v.Type.(*ast.Ident)
		lit, isLit := v.Values[0].(*ast.BasicLit)
		if !ok || typ.Name != "HRESULT" || !isLit {
			return true
		}
		n++
		value, err := strconv.ParseUint(lit.Value, 0, 32)
		if name := HRESULT(value).String(); err != nil || strings.HasPrefix(name, "HRESULT ") {
			t.Errorf("%s has no name: %s", v.Names[0].Name, name)
		}
		return true
	})
	if n < 15 {
		t.Errorf("only %d constants were met", n)
	}
}
