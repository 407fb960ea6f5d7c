/* sample/probe/src/handler.c: the first overflow of a thread's event arrives while the tool gives the thread
 * another event. */
#include "world.h"

#include "handler.c"
#include "handler.h"

enum { OLD = 5, NEXT = 7 }; /* files of events */

void sw_put_back(struct sw_header *h) { (void)h; }

int world_threads(void) { return 2; }

UNSEEN void world_reset(void) { add(slots(recording()), 1001)->clock = (OLD + 1) | SW_CLOCK_FIRST; }

void world_thread(int i)
{
	if (i == 0) {
		sim_store32(&slots(sw_shared)->clock, (NEXT + 1) | SW_CLOCK_FIRST); /* File.SetClock */
		return;
	}
	struct info si = {.code = POLL_IN, .value = OLD};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	uc.regs[REG_SP] = (uint64_t)stack + SW_RED_ZONE;
	sw_handler(SIGURG, &si, &uc);
}

UNSEEN void world_end(void)
{
	uint32_t clock = slots(sw_shared)->clock;
	sim_check((clock & SW_CLOCK_FILE) == NEXT + 1 && clock & SW_CLOCK_FIRST, "the next event is lost");
	sim_outcome(sw_shared->head ? "sampled" : "ignored");
}
