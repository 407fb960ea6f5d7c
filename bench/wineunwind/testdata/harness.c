/* Asks the RtlVirtualUnwind it runs on for the caller's registers, for many
 * points of one image:
 *
 *     harness.exe IMAGE < questions > answers
 *
 * The loader maps the image and finds its exception directory; none of its code
 * runs. Words are little-endian, structures as below:
 *
 *     questions: struct head, the stack's bytes, count * struct point
 *     answers:   struct loaded, count * struct answer
 *
 * The exit code is 2 and standard error says why if there are no answers. */
#include <fcntl.h>
#include <io.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

struct registers {
	uint64_t gpr[16]; /* in the order of UNWIND_INFO, which is CONTEXT's */
	M128A xmm[10];    /* XMM6-XMM15 */
};

struct head {
	uint64_t count;
	uint64_t stack; /* where the stack's bytes are to lie */
	uint64_t size;  /* how many there are */
};

struct loaded {
	uint64_t image; /* its address */
	uint64_t size;  /* SizeOfImage: the loader may prefer a file of its own */
};

struct point {
	uint64_t rva;
	uint64_t unused; /* M128A is aligned to 16 bytes */
	struct registers regs;
};

enum { ENTRY, LEAF, FAULT };

struct answer {
	uint32_t how;     /* an entry was found, none was, or the unwinder faulted */
	uint32_t begin;   /* RVA at which the entry begins */
	uint64_t rip;
	struct registers regs;
	uint64_t frame;   /* EstablisherFrame */
	uint64_t handler; /* RVA of the exception handler in charge, 0 = none */
};

static void *back[5]; /* __builtin_setjmp's */

/* Leaves a call of the unwinder that read what is not mapped. */
static LONG CALLBACK fault(EXCEPTION_POINTERS *e)
{
	if (e->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
		return EXCEPTION_CONTINUE_SEARCH;
	__builtin_longjmp(back, 1);
}

static void die(const char *what)
{
	fprintf(stderr, "harness: %s (error %lu)\n", what, GetLastError());
	exit(2);
}

static void leaf(CONTEXT *c, struct answer *a)
{
	a->how = LEAF;
	a->frame = c->Rsp;
	c->Rip = *(uint64_t *)c->Rsp;
	c->Rsp += 8;
}

static void unwind(CONTEXT *c, struct answer *a)
{
	DWORD64 base;
	PVOID data = NULL;
	RUNTIME_FUNCTION *f = RtlLookupFunctionEntry(c->Rip, &base, NULL);
	if (!f) {
		leaf(c, a);
		return;
	}
	a->how = ENTRY;
	a->begin = f->BeginAddress;
	/* Asking for handlers changes nothing but the answer about them. */
	PVOID h = RtlVirtualUnwind(UNW_FLAG_EHANDLER | UNW_FLAG_UHANDLER, base, c->Rip, f, c, &data, &a->frame, NULL);
	a->handler = h ? (uint64_t)h - base : 0;
}

static void answer(uint64_t image, const struct point *p, struct answer *a)
{
	static CONTEXT c;
	memset(a, 0, sizeof *a);
	memset(&c, 0, sizeof c);
	c.ContextFlags = CONTEXT_FULL;
	c.Rip = image + p->rva;
	memcpy(&c.Rax, p->regs.gpr, sizeof p->regs.gpr);
	memcpy(&c.Xmm6, p->regs.xmm, sizeof p->regs.xmm);
	if (__builtin_setjmp(back) == 0)
		unwind(&c, a);
	else
		a->how = FAULT;
	a->rip = c.Rip;
	memcpy(a->regs.gpr, &c.Rax, sizeof a->regs.gpr);
	memcpy(a->regs.xmm, &c.Xmm6, sizeof a->regs.xmm);
}

/* SizeOfImage as the mapped headers say. */
static uint64_t size_of(uint64_t image)
{
	const IMAGE_DOS_HEADER *dos = (const void *)image;
	const IMAGE_NT_HEADERS *nt = (const void *)(image + dos->e_lfanew);
	return nt->OptionalHeader.SizeOfImage;
}

static void get(void *to, size_t size)
{
	if (size && fread(to, size, 1, stdin) != 1)
		die("the questions are cut short");
}

int main(int argc, char **argv)
{
	static struct point p;
	static struct answer a;
	struct head h;
	if (argc != 2)
		die("usage: harness IMAGE");
	_setmode(_fileno(stdin), _O_BINARY);
	_setmode(_fileno(stdout), _O_BINARY);
	setvbuf(stdin, NULL, _IOFBF, 1 << 20);
	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	uint64_t image = (uint64_t)LoadLibraryExA(argv[1], NULL, DONT_RESOLVE_DLL_REFERENCES);
	if (!image)
		die("the image cannot be loaded");
	get(&h, sizeof h);
	void *stack = VirtualAlloc((void *)h.stack, h.size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	if ((uint64_t)stack != h.stack)
		die("the stack's place is taken");
	get(stack, h.size);
	AddVectoredExceptionHandler(1, fault);
	struct loaded l = {image, size_of(image)};
	fwrite(&l, sizeof l, 1, stdout);
	for (uint64_t i = 0; i < h.count; i++) {
		get(&p, sizeof p);
		answer(image, &p, &a);
		if (fwrite(&a, sizeof a, 1, stdout) != 1)
			die("the answers cannot be written");
	}
	return fflush(stdout) ? 2 : 0;
}
