/* What copy.c needs of the rest of the probe, on Windows. */
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

/* Claims room in the ring, as on Linux (handler.c). */
struct sw_record *sw_claim(struct sw_header *h, uint64_t size, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&h->head, __ATOMIC_RELAXED);
	for (int i = 0; i < 64; i++) {
		if ((int64_t)(head + size - __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE)) > SW_RING_SIZE)
			break;
		if (__atomic_compare_exchange_n(&h->head, &head, head + size, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			struct sw_record *r = (struct sw_record *)((char *)h + SW_BEFORE_RING + (head & (SW_RING_SIZE - 1)));
			r->size = (uint32_t)size;
			__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);
			*at = head;
			return r;
		}
	}
	return 0;
}

int sw_patched(const uint64_t *stack, uint64_t size, uint64_t patch)
{
	for (uint64_t i = 0; patch && i < size / 8; i++)
		if (stack[i] == patch)
			return 1;
	return 0;
}
