package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestName(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"A.B.Method(int, string)", 12, "A.B.Method"},
		{"Name.Space.Type.Method(int)", 12, "…Type.Method"},
		{"[gap: a (b) c]", 8, "… (b) c]"},
		{"日本語.メソッド", 5, "…メソッド"},
		{"Shop.Program.Main (lambda 11)", 20, "…am.Main (lambda 11)"},
		{"shop::(anonymous namespace)::run(int) const", 34, "shop::(anonymous namespace)::run"},
		{"net/http.(*Server).Serve", 18, "…(*Server).Serve"},
		{"System.Threading.Tasks.TaskScheduler.TryRunInline", 36, "…Tasks.TaskScheduler.TryRunInline"},
		{"shop::detail::Impl::operator()", 22, "…Impl::operator()"},
		{"std::__introsort_loop<long>", 22, "…__introsort_loop<…>"},
		{"shop::Impl::operator()(std::string const&, int)", 24, "shop::Impl::operator()"},
		{"std::__introsort_loop<std::vector<int>, _Iter<sum()::{lambda(int)#1}> >", 40, "std::__introsort_loop<…>"},
		{"std::basic_string<char, std::allocator<char> >::append<char*>", 40, "std::basic_string<…>::append<char*>"},
		{"System.PackedSpanHelpers.IndexOfAny<DontNegate<short>,NopTransform>", 50,
			"System.PackedSpanHelpers.IndexOfAny<…>"},
		{"Dictionary<ValueTuple<int,string>,Money>.Enumerator<int>.Next", 34,
			"Dictionary<…>.Enumerator<int>.Next"},
		{"foo::Bar::operator()<int>(int, std::string) const &", 25, "foo::Bar::operator()<int>"},
		{"foo::Bar::run(int) volatile &&", 18, "foo::Bar::run"},
		{"App.Program.<Main>g__Local|0_0<String>", 34, "App.Program.<Main>g__Local|0_0<…>"},
		{"Shop::<lambda(std::vector<Shop::Order>)>", 30, "Shop::<lambda(std::vector<…>)>"},
		{"std::ostream& shop::operator<<(std::ostream&, int)", 30, "std::ostream& shop::operator<<"},
	} {
		if got := Name(c.name, c.n); got != c.want || utf8.RuneCountInString(got) > c.n {
			t.Errorf("Name(%q, %d) = %q, want %q", c.name, c.n, got, c.want)
		}
	}
}

// A name loses what identifies it least, then its module is cut, and only then its own start.
func TestBoth(t *testing.T) {
	const thread = "System.Threading.PortableThreadPool.WorkerThreadStart"
	for _, c := range []struct {
		name, module string
		room         int
		want         string
	}{
		{"A.B.Method(int)", "app", 20, "A.B.Method(int)  app"},
		{"A.B.Method(int)", "app", 16, "A.B.Method  app"},
		{thread, "System.Private.CoreLib", 80, thread + "  System.Private.CoreLib"},
		{thread, "System.Private.CoreLib", 60, "…ortableThreadPool.WorkerThreadStart  System.Private.CoreLib"},
		{thread, "System.Private.CoreLib", 32, "…bleThreadPool.WorkerThreadStart"},
		{"coreclr_execute_assembly", "libcoreclr.so", 32, "coreclr_execute_assembly  libco…"},
		{"WKS::gc_heap::mark_object", "libcoreclr.so", 28, "WKS::gc_heap::mark_object"},
		{"Main", "", 12, "Main"},
	} {
		name, note := Both(c.name, c.module, c.room)
		expect.Equal(t, name+note, c.want, "%q, %q, %d", c.name, c.module, c.room)
	}
}

func TestWrap(t *testing.T) {
	got := strings.Join(Wrap("one ", []string{"M managed", "n native", "s stub"}, 24), "\n")
	expect.Equal(t, got, "one M managed  n native\n    s stub", "two lines")
	got = strings.Join(Wrap("one ", []string{"M managed"}, 5), "\n")
	expect.Equal(t, got, "one M managed", "an entry that is too long")
}
