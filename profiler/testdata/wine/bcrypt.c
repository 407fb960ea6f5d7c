/* bcryptprimitives.dll for Wine 8, which has none. Every Go program for Windows
 * loads it at its start for one function, ProcessPrng, and dies without. Random
 * bytes are advapi32's, under the name RtlGenRandom has there.
 *
 * Built and installed into the prefix by scripts/wine.sh. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG size);

/* 1 if size bytes were filled with random ones, as the real one always answers. */
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T size)
{
	while (size > 0) {
		ULONG part = size > 1 << 20 ? 1 << 20 : (ULONG)size;
		if (!SystemFunction036(buffer, part))
			return FALSE;
		buffer += part;
		size -= part;
	}
	return TRUE;
}
