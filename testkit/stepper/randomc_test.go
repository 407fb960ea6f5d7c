package stepper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomC returns a C program of random functions. The same run gives the same program.
// Its functions call later ones only, or themselves, while there is fuel. The program needs
// no C library if NOLIBC is defined; then everything is its entry point, as in shapes.c.
func randomC(run uint64, functions int) string {
	g := &generator{Rand: rand.New(rand.NewPCG(run, 26)), n: functions}
	g.WriteString(prelude)
	for i := range g.n {
		g.kinds = append(g.kinds, g.IntN(len(heads)))
		fmt.Fprintf(g, heads[g.kinds[i]].declare+";\n", i)
	}
	for i := g.n - 1; i >= 0; i-- {
		g.function(i)
	}
	g.WriteString("static u64 once(u64 n) { u64 v[9] = {n, 1, 2}, *p = v; fuel = 60; return " + g.call(-1) +
		"; }\n" + epilogue)
	return g.String()
}

// generator writes one program.
type generator struct {
	strings.Builder
	*rand.Rand
	n      int
	kinds  []int // of functions, indices of heads
	labels int
}

const prelude = `#include <stdarg.h>
typedef unsigned long long u64;
struct big { u64 v[9]; };
struct pair { u64 a, b; };
typedef u64 (*fn)(u64, u64 *);
volatile u64 sink, magic;
long fuel;
#ifdef NOLIBC
void *memset(void *p, int c, u64 n) { for (volatile char *q = p; n; n--) *q++ = (char)c; return p; }
void *memcpy(void *to, const void *from, u64 n) { for (u64 i = 0; i < n; i++) ((volatile char *)to)[i] = ((const char *)from)[i]; return to; }
int _fltused;
#define SET(e) 0
#define JUMP(e)
#define LIBC(n) (n)
#define EXIT() __builtin_trap()
#define WIDE(n) (n)
#define THREAD
typedef int env_t;
#else
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
typedef jmp_buf env_t;
#define SET(e) setjmp(e)
#define JUMP(e) longjmp(e, 1)
static __attribute__((noinline)) int order(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
static __attribute__((noinline)) u64 libc(u64 n) { char t[40]; snprintf(t, 40, "%llu %g", n, (double)n); qsort(t, 10, 1, order); return (u64)t[3] + strtoull(t + 5, 0, 10); }
#define LIBC(n) libc(n)
#define EXIT() exit(3)
#define WIDE(n) ((u64)(((unsigned __int128)(n) * 12345 + 6) / ((n) | 3)))
#define THREAD __thread
#endif
static env_t *target;
#if defined(__clang__) && __clang_major__ >= 18 && defined(__x86_64__)
// If assembly clobbers rbx in a function that aligns its stack, such a clang loses its caller's r13.
#define CLOBBER(n, ...) __asm__ volatile("" : "+r"(n) : : "r12", "r14", "xmm8", "memory")
#elif defined(__x86_64__)
#define CLOBBER(n, ...) __asm__ volatile("" : "+r"(n) : : __VA_ARGS__)
#else
#define CLOBBER(n, ...) __asm__ volatile("" : "+r"(n) : : "x19", "x20", "x23", "x26", "x28", "d8", "d11", "memory")
#endif
#if defined(__x86_64__)
#define MS __attribute__((ms_abi))
#define REALIGN __attribute__((force_align_arg_pointer))
#else
#define MS
#define REALIGN
#endif
#define NI __attribute__((noinline))
static NI u64 leaf(u64 n) { return n * 7 + (n >> 3); }
static NI u64 touch(volatile void *p, u64 n) { ((volatile char *)p)[n % 8] = (char)n; return n ^ (u64)((volatile char *)p)[3]; }
static NI __attribute__((noreturn)) void die(u64 n) { sink = n; EXIT(); }
static NI u64 plain(u64 n, u64 *p) { return leaf(n) + p[1]; }
static void cleanup(u64 *p) { sink += *p + leaf(*p); }
`

const epilogue = `#ifdef NOLIBC
u64 everything(u64 n) { return once(n) + once(n + 5); }
#else
int main(void) { for (u64 i = 0; i < 4; i++) sink += once(i * 77); return (int)(sink & 1); }
#endif
`

// A head is how a function is declared and called. In a call N is a value, P a pointer.
type head struct{ declare, call string }

var heads = []head{
	{"NI u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"NI u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"static NI u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"NI REALIGN u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"NI MS u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"NI __attribute__((cold)) u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
	{"NI u64 f%d(u64 n, u64 *p, ...)", "f%d(N, P, N + 1, 2.5, N, 4.5, N, N, N, 7ULL)"},
	{"NI struct big f%d(u64 n, u64 *p, struct big w)", "f%d(N, P, *(struct big *)P).v[3]"},
	{"NI struct pair f%d(u64 n, u64 *p)", "f%d(N, P).b"},
	{"NI double f%d(double x, u64 n, u64 *p)", "(u64)f%d(1.5, N, P)"},
	{"NI u64 f%d(u64 n, u64 *p, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g)",
		"f%d(N, P, N, 2, N, 4, 5, N, 7)"},
	{"static inline u64 f%d(u64 n, u64 *p)", "f%d(N, P)"},
}

// result is how a function of a kind returns n.
func result(kind int) string {
	switch {
	case strings.Contains(heads[kind].declare, "struct big"):
		return "{ w.v[n % 9] ^= n; return w; }"
	case strings.Contains(heads[kind].declare, "struct pair"):
		return "{ struct pair w = {n, n + 1}; return w; }"
	case strings.Contains(heads[kind].declare, "double"):
		return "return (double)n + x;"
	}
	return "return n;"
}

// call returns an expression that calls a function after i, or the leaf if i is the last one.
func (g *generator) call(i int) string {
	value := []string{"n", "n + 1", "n ^ 9", "p[n % 3]", "leaf(n)"}[g.IntN(5)]
	if i+1 >= g.n {
		return "leaf(" + value + ")"
	}
	to := i + 1 + min(g.IntN(g.n-i-1), g.IntN(12))
	e := fmt.Sprintf(heads[g.kinds[to]].call, to)
	return "(fuel-- > 0 ? " + strings.NewReplacer("N", value, "P", "p").Replace(e) + " : n)"
}

func (g *generator) function(i int) {
	fmt.Fprintf(g, heads[g.kinds[i]].declare+"\n{\n", i)
	if g.IntN(3) == 0 {
		fmt.Fprintf(g, "if (n %% 5 == %d) %s\n", g.IntN(5), result(g.kinds[i]))
	}
	g.block(i, 2+g.IntN(4), 0)
	if heads[g.kinds[i]].declare == heads[0].declare && g.IntN(3) == 0 {
		fmt.Fprintf(g, "if (fuel-- > 0) return %s(n, p);\n", g.plain(i))
	}
	g.WriteString(result(g.kinds[i]) + "\n}\n")
}

// plain is a function behind i that is called like plain.
func (g *generator) plain(i int) string {
	for k := i + 1 + g.IntN(4); k < g.n; k++ {
		if g.kinds[k] < 2 {
			return fmt.Sprintf("f%d", k)
		}
	}
	return "plain"
}

// block writes some statements of function i.
func (g *generator) block(i, n, depth int) {
	for range n {
		g.statement(i, depth)
	}
}

var registers = []string{`"rbx"`, `"r12"`, `"r13"`, `"r14"`, `"r15"`, `"memory"`, `"cc"`,
	`"xmm8"`, `"rsi"`, `"rdi"`, `"xmm15"`}

func (g *generator) statement(i, depth int) {
	p := func(format string, args ...any) { fmt.Fprintf(g, format+"\n", args...) }
	inner := func(n int) { g.block(i, n, depth+1) }
	kind := g.IntN(24)
	if depth > 2 {
		kind = g.IntN(9)
	}
	switch kind {
	default:
		p("n += %s;", g.call(i))
	case 3:
		p("n ^= touch(p, n) + LIBC(n);")
	case 4:
		p("{ char *q = __builtin_alloca(n %% %d + 16); n += touch(q, n); n += %s; }",
			20+g.IntN(300), g.call(i))
	case 5:
		p("{ u64 v[n %% %d + 2]; v[1] = n; n += touch(v, n) + %s; }", 3+g.IntN(30), g.call(i))
	case 6:
		p("{ __attribute__((aligned(%d))) volatile char room[%d]; n += touch(room, n) + %s; }",
			16<<g.IntN(4), 32+g.IntN(400), g.call(i))
	case 7:
		p("{ volatile char room[%d]; n += touch(room, n) + %s; }",
			[]int{100, 300, 4000, 5000, 9000, 70000}[g.IntN(6)], g.call(i))
	case 8:
		list := slices.Clone(registers)
		g.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		p("CLOBBER(n, %s);", strings.Join(list[:1+g.IntN(len(list)-1)], ", "))
	case 9, 10:
		p("if (n %% %d == 1) {", 2+g.IntN(3))
		inner(1 + g.IntN(2))
		p("} else {")
		inner(1)
		p("}")
	case 11:
		p("for (int i = 0; i < %d; i++) {", 1+g.IntN(3))
		inner(1 + g.IntN(2))
		p("}")
	case 12, 13:
		p("switch (n %% 11) {")
		for k := range 10 {
			p("case %d:", k)
			g.statement(i, 3)
			if g.IntN(4) > 0 {
				p("break;")
			}
		}
		p("}")
	case 14:
		p("{ static u64 keep; fn v[2] = {%s, %s}; if (fuel-- > 0) keep += v[n & 1](n, p); n += keep; }",
			g.plain(i), g.plain(i))
	case 15:
		p("if (magic) die(n);")
	case 16:
		p("{ env_t e, *old = target; target = &e; if (SET(e) == 0) { n += %s; if (n %% 3 == 0 && target == &e) JUMP(e); } target = old; }", g.call(i))
	case 17:
		p("{ double v[8]; for (int i = 0; i < 8; i++) v[i] = (double)(n + (u64)i) * 1.25; n += %s; for (int i = 0; i < 8; i++) n += (u64)v[7 - i]; }", g.call(i))
	case 18:
		p("{ struct big b = {{n, 2, 3}}; struct big c = b; c.v[n %% 9]++; n += touch(&c, n) + %s + b.v[n %% 9]; }", g.call(i))
	case 19:
		g.labels++
		p("{ static void *to[] = {&&a%d, &&b%d, &&c%d}; goto *to[n %% 3];\na%d: n += leaf(n);\nb%d: n += %s;\nc%d:; }", g.labels, g.labels, g.labels, g.labels, g.labels, g.call(i), g.labels)
	case 20:
		p("{ __attribute__((cleanup(cleanup))) u64 c = n; n += %s; }", g.call(i))
	case 21:
		p("n += WIDE(n); if (target && n %% 17 == 0) JUMP(*target);")
	case 22:
		p("{ fn q = n %% 7 ? %s : %s; if (fuel-- > 0) n = q(n, p) + ((u64)__builtin_frame_address(0) & 15); }", g.plain(i), g.plain(i))
	case 23:
		p("{ static THREAD u64 mine; mine += n; n += mine + %s; }", g.call(i))
	}
}
