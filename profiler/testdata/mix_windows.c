/* The native half of Mix.cs. Built without frame pointers. */
#include <stdint.h>
#include <windows.h>

#define EXPORT __declspec(dllexport) __attribute__((noinline))

EXPORT uint32_t mix_spin(int rounds)
{
	uint32_t h = 2166136261u;
	for (int i = 0; i < rounds; i++) {
		h = (h ^ (uint32_t)i) * 16777619u;
		__asm__ volatile("" : "+r"(h)); /* not computed at once */
	}
	return h;
}

EXPORT void mix_sleep(int milliseconds) { Sleep((DWORD)milliseconds); }

/* Calls next from so many frames further down. Each frame has its own size and
 * something to keep in callee-saved registers. */
EXPORT int mix_down(int frames, int (*next)(int), int depth)
{
	volatile char room[32];
	int a = frames * 3, b = depth * 5, below;
	room[frames & 31] = (char)a;
	if (frames > 0)
		below = mix_down(frames - 1, next, depth);
	else
		below = next(depth);
	return below + a + b + room[frames & 31];
}
