// Calls that never return, built without unwind data: behind such a call stands the next
// function of this file.
#include <setjmp.h>
#define NOINLINE __attribute__((noinline))
volatile long sink;
static jmp_buf jb;
NOINLINE long g(long n) {
	sink+=n;
	return sink*n;
}
NOINLINE long h2(long a,long b,long c) {
	long r=g(a);
	r+=g(b)*r;
	r^=g(c+r);
	return r+a*b;
}
NOINLINE long h(long n) {
	long a=g(n),b=g(n+1),c=g(n+2),d=g(n+3);
	for(int i=0;i<2;i++) a+=h2(a,b,c)*d;
	return a+b+c+d;
}
NOINLINE __attribute__((noreturn)) void die(long n) {
	sink+=g(n)+g(n+1);
	__builtin_longjmp(jb,1);
}
NOINLINE __attribute__((noreturn)) void chk1(long n) {
	volatile long v[3];
	v[2]=n;
	sink+=h(n);
	die(n);
}
NOINLINE long small1(long n) {
	return n*3;
}
NOINLINE __attribute__((noreturn)) void chk2(long n,long m) {
	volatile long v[7];
	v[5]=n;
	sink+=g(m);
	die(n+m);
}
NOINLINE long small2(long n,long*p) {
	*p=n;
	return n+*p;
}
NOINLINE __attribute__((noreturn)) void chk3(long n) {
	sink+=g(n);
	die(n);
}
NOINLINE long small3(void) {
	return 0;
}
NOINLINE __attribute__((noreturn)) void chk4(long n) {
	volatile long v[12];
	v[n&1]=g(n);
	die(n);
}
NOINLINE long small4(long n) {
	return -n;
}
NOINLINE void run(int i) {
	long x;
	if(__builtin_setjmp(jb)==0) {
		switch(i&3) {
			case 0: chk1(i);
			case 1: chk2(i,2);
			case 2: chk3(i);
			default: chk4(i);
		}
	}
}
int main(void) {
	for(int i=0;i<12;i++) {
		sink+=h(i)+h2(i,2,3);
		run(i);
		sink+=small1(i)+small2(i,(long*)&sink)+small3()+small4(i);
	}
	return 0;
}
