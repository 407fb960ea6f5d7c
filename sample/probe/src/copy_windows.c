/* The functions of the probe that copy.c needs, on Windows. */
#include "local.h"

void sw_copy(void *to, uint64_t from, uint64_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* sw_checked is for the calling thread's stack. Other memory may be unmapped: the system copies it. */
uint64_t sw_checked(void *to, uint64_t from, uint64_t n)
{
	enum { PAGE = 4096 };
	uint64_t base = thread_base();
	if (from >= P(__builtin_frame_address(0)) && from < base && n <= base - from) {
		sw_copy(to, from, n);
		return n;
	}
	uint64_t done = 0;
	for (SIZE_T got; from && done < n; done += got) {
		uint64_t page = PAGE - (from + done) % PAGE;
		if (!ReadProcessMemory(GetCurrentProcess(), (void *)(uintptr_t)(from + done), (char *)to + done, n - done < page ? n - done : page, &got) || !got)
			break;
	}
	return done;
}
