// Package recording reads and writes recording files (.swrec): the streams of all processes of a
// recording, as they came, with what a later report needs to know. Every other output can be
// made from such a file, also on another machine.
//
// Sources: our own format. Messages are those of package wire. Compression is DEFLATE
// (RFC 1951), the checksum is CRC-32C (Castagnoli, RFC 3720 section B.4).
//
// Layout. Integers outside of items are little-endian.
//
//	file  = "SWREC\r\n" u8 version, block ...
//	block = u32 size, u32 raw size, u32 CRC-32C of the bytes that follow, size bytes of DEFLATE
//	raw   = item ...
//	item  = uvarint process, u8 type, uvarint length, payload
//
// Processes are numbered from 1. An item of a process is a message of package wire. An item of
// process 0 belongs to the recording:
//
//	1 Info     JSON, see collect.Info. The last one counts.
//	2 Process  uvarint number, PID, flags (1: keeps suspension frames), string name
//	3 Image    uvarint number, string path, string build ID
//	4 Name     uvarint image, address, start, end, string name ("" = the range only); where it is
//	           known: string source file, uvarint line
//	5 End      uvarint 1. The recording ended as intended.
//
// Strings are a uvarint length and bytes. A reader skips items of types that it does not know,
// and bytes at the end of a payload.
//
// Glossary. An item is one message. A block is a group of items that is compressed and checked
// as one.
//
// Strategy. The writer ends a block after a second or 1 MiB, so that a crash costs at most the
// last second. An item never spans blocks. The reader takes every block until the first that is
// cut or damaged, and reports the offset of that block.
//
// Known gaps: blocks after a damaged one are not read, since their samples may need methods and
// modules of the lost block.
package recording
