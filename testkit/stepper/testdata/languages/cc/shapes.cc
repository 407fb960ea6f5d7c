#include <coroutine>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>
struct gen {
	struct promise_type {
		int v = 0;
		std::exception_ptr e;
		gen get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int x)
		{
			v = x;
			return {};
		}
		void return_void() {}
		void unhandled_exception() { e = std::current_exception(); }
	};
	std::coroutine_handle<promise_type> h;
	~gen() { h.destroy(); }
	bool next()
	{
		h.resume();
		if (h.promise().e)
			std::rethrow_exception(h.promise().e);
		return !h.done();
	}
};
struct task {
	struct promise_type {
		std::coroutine_handle<> then;
		int v;
		task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
		std::suspend_always initial_suspend() noexcept { return {}; }
		struct fin {
			bool await_ready() noexcept { return false; }
			std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept
			{
				return h.promise().then ? h.promise().then : std::noop_coroutine();
			}
			void await_resume() noexcept {}
		};
		fin final_suspend() noexcept { return {}; }
		void return_value(int x) { v = x; }
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> h;
	~task() { h.destroy(); }
	bool await_ready() { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> c)
	{
		h.promise().then = c;
		return h;
	}
	int await_resume() { return h.promise().v; }
};
#define NI __attribute__((noinline))
struct D {
	int *p;
	NI ~D() { ++*p; }
};
NI int thrower(int n)
{
	if (n % 3 == 0)
		throw std::runtime_error(std::to_string(n));
	if (n % 5 == 0)
		throw n;
	return n;
}
NI gen numbers(int n)
{
	D d{&n};
	for (int i = 1; i < n; i++) {
		std::string s(i, 'x');
		co_yield (int) s.size();
		thrower(i);
	}
}
NI task leaf(int n)
{
	std::vector<int> v(n, 3);
	co_return (int) v.size();
}
NI task sum(int n)
{
	int s = 0;
	for (int i = 1; i < n; i++)
		s += co_await leaf(i);
	co_return s;
}
struct V {
	virtual int f(int) = 0;
	virtual ~V() = default;
};
struct W {
	int pad[4];
	virtual int g() { return 1; }
	virtual ~W() = default;
};
struct X : W, V {
	int f(int n) override { return n ? f(n - 1) + thrower(7) : 1; }
};
NI int mapped(int n)
{
	std::map<std::string, std::function<int(int)>> m;
	for (int i = 0; i < n; i++)
		m[std::to_string(i * 37)] = [=](int k) { return k * i; };
	int s = 0;
	for (auto &[k, f] : m)
		s += f((int)k.size());
	return s;
}
NI int visit(std::variant<int, std::string, double> v)
{
	return std::visit(
		[](auto &&x) -> int {
			if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>)
				return (int)x.size();
			else
				return (int)x;
		},
		v);
}
int main()
{
	int s = 0;
	for (int n = 1; n < 8; n++) {
		int k = 0;
		D d{&k};
		try {
			auto g = numbers(n);
			while (g.next())
				s += g.h.promise().v;
			s += thrower(n);
		} catch (const std::exception &e) {
			s += e.what()[0];
		} catch (int i) {
			s += i;
		}
		auto t = sum(n);
		t.h.resume();
		s += t.h.promise().v;
		std::unique_ptr<V> v(new X);
		s += v->f(n);
		s += mapped(n) + visit(n) + visit(std::string("abc")) + visit(2.5);
		std::ostringstream o;
		o << s << ' ' << 1.5 * n;
		s += (int)o.str().size();
	}
	return s == 0;
}
