# Call frame programs byte by byte, for the assembler of any x86-64 GNU system:
# one CIE that names no register but the CFA, so that an FDE without a program
# shows a reader's own default row, and one FDE for each group of opcodes.
# Compilers emit few of them.
	.set def_cfa, 0x0c

	.macro fde from, to
	.long	9f - 8f
8:	.long	8b - cie
	.quad	\from - .
	.quad	\to - \from
	.uleb128 0
	.endm

	.macro done
	.balign	8, 0
9:
	.endm

	.macro cie_header mark
	.long	9f - 8f
8:	.long	0
	.byte	1
	.asciz	"zR"
	.uleb128 1
	.sleb128 -8
	.uleb128 16
	.uleb128 1
	.byte	0x1c			# pcrel sdata8
	.endm

	.text
f0:	.skip	16, 0x90
f1:	.skip	64, 0x90
f2:	.skip	64, 0x90
f3:	.skip	64, 0x90
f4:	.skip	0x11000, 0x90
f5:	.skip	64, 0x90
f6:	.skip	64, 0x90
end:

	.section .eh_frame, "a", @progbits
cie:	cie_header
	.byte	def_cfa, 7, 8
	done

	fde	f0, f1			# the default row
	done

	fde	f1, f2			# every kind of rule, then back
	.byte	0x80 + 16, 1		# offset RA
	.byte	0x41, 0x80 + 3, 2	# offset rbx
	.byte	0x41, 0x05, 6, 3	# offset_extended rbp
	.byte	0x41, 0x07, 12		# undefined r12, same value by default
	.byte	0x41, 0x07, 17		# undefined xmm0, undefined by default
	.byte	0x41, 0x08, 3		# same_value rbx
	.byte	0x41, 0x08, 18		# same_value xmm1
	.byte	0x41, 0x09, 13, 1	# register r13 in rdx
	.byte	0x41, 0x11, 14, 0x7d	# offset_extended_sf r14, -3
	.byte	0x41, 0x14, 15, 2	# val_offset r15
	.byte	0x41, 0x15, 0, 0x7e	# val_offset_sf rax, -2
	.byte	0x41, 0x2f, 1, 4	# GNU_negative_offset_extended rdx
	.byte	0x41, 0x2e, 16		# GNU_args_size
	.byte	0x41, 0x80 + 2, 0	# offset rcx, 0
	.byte	0x41, 0x14, 4, 0	# val_offset rsi, 0
	.byte	0x41, 0xc0 + 3		# restore rbx
	.byte	0x41, 0x06, 12		# restore_extended r12
	.byte	0x41, 0x08, 16		# same_value RA
	.byte	0x41, 0x07, 16		# undefined RA
	.byte	0x41, 0xc0 + 16		# restore RA
	done

	fde	f2, f3			# the CFA
	.byte	0x0e, 16		# def_cfa_offset
	.byte	0x41, 0x0d, 6		# def_cfa_register
	.byte	0x41, 0x12, 12, 0x7c	# def_cfa_sf r12, -4
	.byte	0x41, 0x13, 0x7b	# def_cfa_offset_sf -5
	.byte	0x41, 0x13, 2		# def_cfa_offset_sf 2: a negative offset
	.byte	0x41, 0x0f, 5, 0x77, 8, 0x06, 0x23, 16	# breg7+8, deref, plus_uconst
	.byte	0x41, 0x0c, 7, 8	# def_cfa: whole again
	.byte	0x41, 0x0c, 0x80, 0x01, 0x80, 0x01	# def_cfa r128+128
	done

	fde	f3, f4			# remember and restore
	.byte	0x80 + 3, 2
	.byte	0x42, 0x0a, 0x0e, 24, 0x80 + 6, 3	# remember
	.byte	0x42, 0x0a, 0x0d, 6, 0x07, 3		# remember
	.byte	0x42, 0x0b				# restore
	.byte	0x42, 0x0e, 32
	.byte	0x42, 0x0b, 0x80 + 12, 4		# restore, and a change at once
	.byte	0x42, 0xc0 + 12
	done

	fde	f4, f5			# every way to move
	.byte	0x02, 0xff, 0x80 + 3, 2		# advance_loc1
	.byte	0x03, 0x01, 0x02, 0x80 + 6, 3	# advance_loc2
	.byte	0x04, 0, 0, 1, 0, 0x80 + 12, 4	# advance_loc4
	.byte	0x1d, 8, 0, 0, 0, 0, 0, 0, 0, 0x80 + 13, 5	# advance_loc8
	.byte	0x01				# set_loc
	.quad	f4 + 0x10800 - .
	.byte	0x80 + 14, 6
	.byte	0x40, 0x40, 0x80 + 15, 7	# advance by nothing, twice
	.byte	0x7f, 0xc0 + 15
	done

	fde	f5, f6			# expressions
	.byte	0x10, 3, 2, 0x76, 0x78		# expression rbx: breg6-8
	.byte	0x41, 0x16, 7, 3, 0x77, 0x80, 0x01	# val_expression rsp: breg7+128
	.byte	0x41, 0x10, 6, 18, 0x08, 0xff, 0x09, 0x80, 0x0a, 0x34, 0x12, 0x0b, 0xfe, 0xff, 0x22, 0x22, 0x22, 0x10, 0x80, 0x02, 0x1c, 0x96
	.byte	0x41, 0x16, 12, 21, 0x0c, 1, 2, 3, 0x84, 0x0d, 1, 2, 3, 0x84, 0x15, 1, 0x12, 0x14, 0x13, 0x16, 0x17, 0x19, 0x1f, 0x20, 0x13
	.byte	0x41, 0x16, 13, 20, 0x0e, 1, 2, 3, 4, 5, 6, 7, 0x88, 0x0f, 1, 2, 3, 4, 5, 6, 7, 0x88, 0x1b, 0x1d
	.byte	0x41, 0x16, 14, 18, 0x11, 0x7f, 0x92, 6, 0x78, 0x94, 4, 0x30, 0x4f, 0x28, 1, 0, 0x96, 0x2f, 0xfc, 0xff, 0x29, 0x2e
	.byte	0x41, 0x10, 15, 0		# an empty expression: saved at the CFA
	.byte	0x41, 0x10, 0x12, 3, 0x11, 0x80, 0x7f	# consts -128 of xmm1
	.byte	0x41, 0xc0 + 3, 0xc0 + 7
	done

	fde	f6, end			# registers that rows of ours do not keep
	.byte	0x05, 33, 2			# st0
	.byte	0x41, 0x08, 49			# rflags
	.byte	0x41, 0x09, 1, 0xff, 0x01	# register rdx in r255
	done

	.long	0
	.section .note.GNU-stack, "", @progbits
