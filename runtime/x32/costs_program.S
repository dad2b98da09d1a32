/*
 * The little program of costs.c: an x32 program without a file. Each loop makes COSTS_CALLS calls of one way, between two
 * readings of the time-stamp counter, and reports the ticks by a call of its own, arch_prctl(0x5744 + the loop's number, ticks).
 * Sites are rewritten when they trap for the second time, so the first round is not kept.
 */
    .section .rodata
    .globl x32_costs_program
    .globl x32_costs_program_end

/* The call in the way of compilers and libraries: it is rewritten. */
.macro MAKE number
    mov $0x40000000 + \number, %eax
    syscall
.endm

.macro LOOP index, calls:vararg
    mov $128, %ebx
    lfence
    rdtsc
    lfence
    mov %eax, %r12d
    .balign 16, 0x90
1:  \calls
    dec %ebx
    jnz 1b
    lfence
    rdtsc
    lfence
    sub %r12d, %eax
    mov %eax, %esi
    mov $0x5744 + \index, %edi
    call 9f
.endm

    .balign 64
x32_costs_program:
    mov $26, %ebp
2:
    /* A call that its stub makes: getppid. */
    LOOP 0, MAKE 110
    /* A call that enters the runtime and is then forwarded: arch_prctl of an unknown code. */
    xor %edi, %edi
    LOOP 1, MAKE 158
    /* The same, while every call is timed. */
    mov $0x5754, %edi
    call 9f
    xor %edi, %edi
    LOOP 2, MAKE 158
    mov $0x5755, %edi
    call 9f
    /* A call through the i386 entry: getdents64 of no descriptor. */
    mov $-1, %edi
    LOOP 3, MAKE 217
    /* A site of no known pattern: it traps each time. */
    mov $0x40000000, %r13d
    mov $16, %ebx
    rdtsc
    mov %eax, %r12d
3:  lea 110(%r13), %eax
    nop
    syscall
    nop
    nop
    nop
    nop
    dec %ebx
    jnz 3b
    rdtsc
    sub %r12d, %eax
    shl $3, %eax
    mov %eax, %esi
    mov $0x5744 + 4, %edi
    call 9f
    dec %ebp
    jnz 2b
    xor %edi, %edi
    MAKE 231
    ud2
    .balign 64
9:  MAKE 158
    ret
    .balign 64
x32_costs_program_end:

    .section .note.GNU-stack, "", @progbits
