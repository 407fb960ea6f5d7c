package paused

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestFullName(t *testing.T) {
	for _, c := range []struct{ meta, short, want string }{
		{"App.OrderFailed`1", "OrderFailed<int>", "App.OrderFailed<int>"},
		{"App.Outer`1+Inner", "Outer<int>.Inner", "App.Outer<int>.Inner"},
		{"Plain", "Plain", "Plain"},
		{"App.OrderFailed`1", "", "App.OrderFailed`1"}, // the core is damaged
	} {
		expect.Equal(t, fullName(c.meta, c.short), c.want, c.meta)
	}
}
