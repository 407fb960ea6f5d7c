// Switches through tables and tail calls through memory, built without unwind data: a
// jump through a register or memory may stay in the function.
#define NOINLINE __attribute__((noinline))
volatile long sink;
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
NOINLINE long sw(long n) {
	long v[4];
	switch(n) {
		case 0: return g(1)+n;
		case 1: v[0]=n;
		return h(2)+v[0];
		case 2: return g(n)*g(n+1);
		case 3: return h2(n,1,2)-1;
		case 4: return g(n)-3;
		case 5: v[2]=g(n);
		v[1]=h(3);
		return v[2]*v[1];
		case 6: return 9+g(3);
		case 7: return g(7)|h(1);
	}
	return g(n)+1;
}
NOINLINE long sw2(long n,long m) {
	volatile long pad[5];
	pad[n&3]=m;
	long r=h(m);
	switch(n) {
		case 10: r+=g(r);
		break;
		case 11: r*=g(n);
		break;
		case 12: r^=h2(r,n,m);
		break;
		case 13: r-=3+g(m);
		break;
		case 14: r+=pad[2];
		break;
		case 15: r=h(r&3);
		break;
		case 16: r=g(r)+g(m);
		break;
	}
	return r+pad[1];
}
NOINLINE long ind(long(*f)(long),long n) {
	long a[3];
	a[n&1]=n;
	long r=h(a[n&1]);
	return f(r)+n;
}
NOINLINE long tail(long(**f)(long),long n) {
	sink++;
	return f[n&1](n);
}
long (*tab[2])(long) = {g, h};
int main(void) {
	for(int i=0;i<9;i++) sink+=sw(i)+sw2(10+i,i)+ind(i&1?g:h,i)+tail(tab,i);
	return 0;
}
