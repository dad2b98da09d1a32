/*
 * The empty program of each ABI: it exits. What the kernel spends on starting and ending it is what it spends
 * on any program, and is subtracted from the measured one's counts.
 */
	.globl _start
	.text
_start:
#if defined(__i386__)
	movl $1, %eax
	xorl %ebx, %ebx
	int $0x80
#elif defined(__ILP32__)
	movl $(0x40000000 + 60), %eax
	xorl %edi, %edi
	syscall
#else
	movl $60, %eax
	xorl %edi, %edi
	syscall
#endif
	.section .note.GNU-stack, "", @progbits
