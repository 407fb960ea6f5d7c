/* sample/probe/src/dropped.c: two threads count dropped events of the same type (SAME) or of two
 * types while the tool reads the table. The reader is File.Dropped of sample/probe/dropped.go. */
#include "world.h"

#include "dropped.c"

enum { EVENTS = 2 };
struct sw_header *sw_shared;
static char file[SW_BEFORE_RING + SW_RING_SIZE] __attribute__((aligned(4096)));
static uint8_t payload[2][44];
static struct sw_type *place[2];

void sw_copy(void *to, uint64_t from, uint64_t n) { sim_copy(to, from, n); }

int world_threads(void) { return 3; }

UNSEEN static uint64_t key(int i) { return SAME ? 0x7000 : 0x7000 + 8 * (uint64_t)i; }

UNSEEN void world_reset(void)
{
	memset(file, 0, sizeof file);
	sw_shared = (struct sw_header *)file;
	for (int i = 0; i < 2; i++) {
		uint64_t words[2] = {100, key(i)};
		memcpy(payload[i] + 10, words, sizeof words);
		for (int k = 0; k < 8; k++)
			payload[i][26 + 2 * k] = (uint8_t)('a' + (SAME ? 0 : i));
		int first = 0;
		place[i] = entry(sw_shared, key(i), &first);
	}
	memset(file, 0, sizeof file);
	for (int i = 0; i < 2; i++)
		sim_watch(place[i], sizeof *place[i]);
}

UNSEEN static void read_types(int end)
{
	uint64_t sum = 0;
	for (int i = 0; i < (SAME ? 1 : 2); i++) {
		struct sw_type *t = place[i];
		uint64_t n = sim_load64(&t->count), bytes = sim_load64(&t->bytes);
		uint32_t size = sim_load32(&t->size);
		sum += n;
		sim_check(bytes <= 100u * 2 * EVENTS, "more bytes than were dropped");
		sim_check(!end || (n && size == 17 && bytes == 100 * n), "a type has no name, or other bytes than events");
		if (size) {
			sim_range(t->name, size - 1, SIM_READ);
			sim_check(size == 17 && t->name[0] == t->name[14] && t->name[0] == 'a' + (SAME ? 0 : i), "the name of a type is not whole");
			sim_outcome("named ");
		}
	}
	sim_check(!end || sum == 2 * EVENTS, "a dropped event is not counted");
}

void world_thread(int i)
{
	for (int k = 0; i < 2 && k < EVENTS; k++)
		sw_dropped(sw_shared, TICK, payload[i], sizeof payload[i]);
	if (i == 2)
		read_types(0);
}

UNSEEN void world_end(void) { read_types(1); }
