/* Prints the version of the client library, and the names of gaps. */
#include <stdio.h>

#include "seedwalk.h"

int main(void)
{
	char text[64];
	unsigned abi = seedwalk_version(text, sizeof text);
	printf("%u %s\n", abi, text);
	int n = seedwalk_gap_name(SEEDWALK_GAP_NO_ANSWER, text, 4);
	printf("%d %s\n", n, text);
	static const int gaps[] = {SEEDWALK_GAP_NONE, SEEDWALK_GAP_CODE_UNLOADED, SEEDWALK_GAP_CODE_UNLOADED + 1};
	for (int i = 0; i < 3; i++) {
		n = seedwalk_gap_name(gaps[i], text, sizeof text);
		printf("%d %s\n", n, text);
	}
	return 0;
}
