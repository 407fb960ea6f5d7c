/* seedwalk_sampler_copy(tag) calls sw_copy_now(tag, kept). kept points to the caller's registers: the return
 * address, the stack pointer, and those that a function preserves. */
#ifdef _WIN32
__asm__(".text\n.globl seedwalk_sampler_copy\n.def seedwalk_sampler_copy; .scl 2; .type 32; .endef\n.seh_proc seedwalk_sampler_copy\n"
	"seedwalk_sampler_copy:\n\tsub $120, %rsp\n\t.seh_stackalloc 120\n\t.seh_endprologue\n"
	"\tmov 120(%rsp), %rax\n\tmov %rax, 32(%rsp)\n\tlea 128(%rsp), %rax\n\tmov %rax, 40(%rsp)\n"
	"\tmov %rbx, 48(%rsp)\n\tmov %rbp, 56(%rsp)\n\tmov %r12, 64(%rsp)\n\tmov %r13, 72(%rsp)\n"
	"\tmov %r14, 80(%rsp)\n\tmov %r15, 88(%rsp)\n\tmov %rsi, 96(%rsp)\n\tmov %rdi, 104(%rsp)\n"
	"\tlea 32(%rsp), %rdx\n\tcall sw_copy_now\n\tadd $120, %rsp\n\tret\n\t.seh_endproc\n");
#elif defined(__x86_64__)
__asm__(".text\n.globl seedwalk_sampler_copy\n.type seedwalk_sampler_copy,%function\nseedwalk_sampler_copy:\n\t.cfi_startproc\n"
	"\tmov (%rsp), %r10\n\tlea 8(%rsp), %r11\n\tsub $72, %rsp\n\t.cfi_adjust_cfa_offset 72\n"
	"\tmov %r10, (%rsp)\n\tmov %r11, 8(%rsp)\n\tmov %rbx, 16(%rsp)\n\tmov %rbp, 24(%rsp)\n"
	"\tmov %r12, 32(%rsp)\n\tmov %r13, 40(%rsp)\n\tmov %r14, 48(%rsp)\n\tmov %r15, 56(%rsp)\n"
	"\tmov %rsp, %rsi\n\tcall sw_copy_now\n\tadd $72, %rsp\n\t.cfi_adjust_cfa_offset -72\n\tret\n"
	"\t.cfi_endproc\n.size seedwalk_sampler_copy, .-seedwalk_sampler_copy\n");
#else
__asm__(".text\n.globl seedwalk_sampler_copy\n.type seedwalk_sampler_copy,%function\nseedwalk_sampler_copy:\n\t.cfi_startproc\n"
	"\tsub sp, sp, #192\n\t.cfi_adjust_cfa_offset 192\n\tstp x29, x30, [sp, #176]\n\t.cfi_rel_offset x29, 176\n\t.cfi_rel_offset x30, 184\n"
	"\tadd x9, sp, #192\n\tstp x30, x9, [sp]\n"
	"\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\tstp x23, x24, [sp, #48]\n"
	"\tstp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\tstr x29, [sp, #96]\n"
	"\tstp d8, d9, [sp, #104]\n\tstp d10, d11, [sp, #120]\n\tstp d12, d13, [sp, #136]\n\tstp d14, d15, [sp, #152]\n"
	"\tadd x29, sp, #176\n\tmov x1, sp\n\tbl sw_copy_now\n"
	"\tldp x29, x30, [sp, #176]\n\t.cfi_restore x29\n\t.cfi_restore x30\n\tadd sp, sp, #192\n\t.cfi_adjust_cfa_offset -192\n\tret\n"
	"\t.cfi_endproc\n.size seedwalk_sampler_copy, .-seedwalk_sampler_copy\n");
#endif
