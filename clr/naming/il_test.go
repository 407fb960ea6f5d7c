package naming

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestCalled(t *testing.T) {
	for name, want := range map[string]string{
		"App.Outer+Inner::Run": "Run", "App.Box`1::.ctor": ".ctor", "App.Box`1::.cctor": ".cctor",
		"App.Bag::System.IDisposable.Dispose": "Dispose", "App.Bag+<Run>d__1::MoveNext (async)": "MoveNext",
		"Global": "Global", "": "",
	} {
		m := Method{MethodName: demangle.MethodName{Name: name}}
		expect.Equal(t, m.Called(), want, name)
	}
}
