#include "shim.h"

/* UTF-16 to UTF-8; lone surrogates become '?'. Returns the bytes written. */
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room)
{
	int n = 0;
	for (uint32_t i = 0; i < units && n + 5 < room; i++) {
		uint32_t c = in[i];
		if (c >= 0xd800 && c < 0xdc00 && i + 1 < units && in[i + 1] >= 0xdc00 && in[i + 1] < 0xe000)
			c = 0x10000 + ((c - 0xd800) << 10) + (in[++i] - 0xdc00u);
		else if (c >= 0xd800 && c < 0xe000)
			c = '?';
		int extra = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
		static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
		out[n++] = (char)(lead[extra] | c >> (6 * extra));
		for (int k = extra - 1; k >= 0; k--)
			out[n++] = (char)(0x80 | (c >> (6 * k) & 0x3f));
	}
	out[n] = 0;
	return n;
}
