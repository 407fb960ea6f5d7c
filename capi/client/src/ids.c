/* The runtime's id of each thread, by the system's number. The callbacks of many threads write the table
 * and the sampling thread reads it, without a lock. The system may use a number again before
 * ThreadDestroyed of its last owner arrives. */
#include "ids.h"

#include "seedwalk.h"

#ifndef PLACES
enum { PLACES = 8192, NEAR_PLACES = 16 };
#endif
enum { FREE = 0, WRITING = 1 }; /* no ThreadID has these values */

/* os is written while id is WRITING only. An entry that becomes free keeps its number. */
static struct { uint64_t os, id; } ids[PLACES];

/* place writes a thread into the entry that has its number, or into a free one. It returns 0 if no entry is free. */
static int place(uint64_t os_thread, uint64_t thread, int same)
{
	for (uint32_t i = 0; i < NEAR_PLACES; i++) {
		uint32_t at = (uint32_t)((os_thread + i) % PLACES);
		uint64_t id = __atomic_load_n(&ids[at].id, __ATOMIC_ACQUIRE);
		if (same ? __atomic_load_n(&ids[at].os, __ATOMIC_RELAXED) != os_thread : id != FREE)
			continue;
		if (id == WRITING || !__atomic_compare_exchange_n(&ids[at].id, &id, WRITING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue; /* another thread takes it: it was free, so it is not this thread's any more */
		__atomic_store_n(&ids[at].os, os_thread, __ATOMIC_RELEASE);
		__atomic_store_n(&ids[at].id, thread, __ATOMIC_RELEASE);
		return 1;
	}
	return 0;
}

EXPORT int seedwalk_sampler_thread_assigned(uint64_t thread, uint32_t os_thread)
{
	if (!place(os_thread, thread, 1))
		place(os_thread, thread, 0);
	return SEEDWALK_OK;
}

EXPORT int seedwalk_sampler_thread_destroyed(uint64_t thread)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		uint64_t id = thread; /* the number may have another owner by now */
		if (__atomic_load_n(&ids[i].id, __ATOMIC_RELAXED) == thread)
			__atomic_compare_exchange_n(&ids[i].id, &id, FREE, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	return SEEDWALK_OK;
}

uint64_t sw_id_of(uint64_t os_thread)
{
	for (uint32_t i = 0; i < NEAR_PLACES; i++) {
		uint32_t at = (uint32_t)((os_thread + i) % PLACES);
		if (__atomic_load_n(&ids[at].os, __ATOMIC_ACQUIRE) != os_thread)
			continue;
		uint64_t id = __atomic_load_n(&ids[at].id, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&ids[at].os, __ATOMIC_RELAXED) == os_thread) /* else the id is another thread's */
			return id == WRITING ? 0 : id;
	}
	return 0;
}
