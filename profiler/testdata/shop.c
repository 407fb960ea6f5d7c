/* A library like the runtime's: one export, static functions, callbacks into managed code, and no symbols once
 * it is stripped. */
#include <stdint.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint32_t stock[4096];

NOINLINE static uint32_t shop_price(uint32_t item, int rounds)
{
	for (int i = 0; i < rounds; i++)
		item = item * 1664525u + stock[(item + (uint32_t)i) & 4095];
	return item;
}

NOINLINE static uint32_t shop_tax(uint32_t sum)
{
	for (int i = 0; i < 3000; i++)
		sum = sum / 7 + (sum ^ stock[sum & 4095]);
	return sum;
}

NOINLINE static uint32_t shop_cart(uint32_t item, int depth)
{
	uint32_t sum = shop_price(item, 2000);
	if (depth > 0)
		sum += shop_cart(item + 1, depth - 1);
	return sum ^ 1;
}

NOINLINE static void shop_restock(uint32_t seed)
{
	for (uint32_t i = 0; i < 16 * 4096; i++)
		stock[i & 4095] = seed ^ i * 2654435761u;
}

static int64_t shop_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Sells for some milliseconds. Each sale is announced. */
__attribute__((visibility("default"))) uint32_t shop_open(int milliseconds, uint32_t (*announce)(uint32_t))
{
	uint32_t sum = 1;
	for (int64_t end = shop_now() + milliseconds; shop_now() < end;) {
		shop_restock(sum);
		for (int i = 0; i < 20; i++)
			sum = announce(shop_tax(shop_cart(sum, 5)));
	}
	return sum;
}
