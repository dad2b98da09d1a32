/*
 * What AT_SYSINFO_EHDR shows the program: a shared object of one page, ELFCLASS32, whose functions jump to those of the
 * kernel's own 64-bit vDSO. Timespec and timeval are the same in both widths, and so is the calling convention of what
 * they take. The addresses at x32_vdso_targets are filled in at the start (vdso.c); the page is copied below 4 GiB.
 */
#define AT(label) (label - x32_vdso)

    .section .rodata
    .balign 8
    .globl x32_vdso
x32_vdso:
    /* Elf32_Ehdr */
    .byte 0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
    .short 3, 62
    .long 1, 0, AT(program_headers), 0, 0
    .short 52, 32, 2, 40, 0, 0
program_headers:
    .long 1, 0, 0, 0, AT(end), AT(end), 5, 0x1000
    .long 2, AT(dynamic), AT(dynamic), AT(dynamic), AT(dynamic_end) - AT(dynamic), AT(dynamic_end) - AT(dynamic), 4, 4
    .balign 4
dynamic:
    .long 14, soname - strings
    .long 4, AT(hash)
    .long 5, AT(strings)
    .long 6, AT(symbols)
    .long 10, strings_end - strings
    .long 11, 16
    .long 0x6ffffff0, AT(versions)
    .long 0x6ffffffc, AT(definitions)
    .long 0x6ffffffd, 2
    .long 0, 0
dynamic_end:
    .balign 4
symbols:
    .long 0, 0, 0
    .byte 0, 0
    .short 0
#define SYMBOL(name) \
    .long name_##name - strings, AT(name), 8; \
    .byte 0x12, 0; \
    .short 1
    SYMBOL(clock_gettime)
    SYMBOL(gettimeofday)
    SYMBOL(time)
    SYMBOL(clock_getres)
    SYMBOL(getcpu)
/* One bucket: five names need no more. */
hash:
    .long 1, 6, 1
    .long 0, 2, 3, 4, 5, 0
versions:
    .short 0, 2, 2, 2, 2, 2
    .balign 4
definitions:
    .short 1, 1, 1, 1
    .long 0x0deebfa1, 20, 28 /* the hash of the object's own name */
    .long soname - strings, 0
    .short 1, 0, 2, 1
    .long 0x03ae75f6, 20, 0 /* and of LINUX_2.6 */
    .long version - strings, 0
strings:
    .byte 0
soname:
    .asciz "linux-vdso.so.1"
version:
    .asciz "LINUX_2.6"
name_clock_gettime:
    .asciz "__vdso_clock_gettime"
name_gettimeofday:
    .asciz "__vdso_gettimeofday"
name_time:
    .asciz "__vdso_time"
name_clock_getres:
    .asciz "__vdso_clock_getres"
name_getcpu:
    .asciz "__vdso_getcpu"
strings_end:
    .balign 8
    .globl x32_vdso_targets
x32_vdso_targets:
    .quad 0, 0, 0, 0, 0
    .balign 16
clock_gettime:
    jmp *x32_vdso_targets(%rip)
    .balign 8
gettimeofday:
    jmp *(x32_vdso_targets + 8)(%rip)
    .balign 8
time:
    jmp *(x32_vdso_targets + 16)(%rip)
    .balign 8
clock_getres:
    jmp *(x32_vdso_targets + 24)(%rip)
    .balign 8
getcpu:
    jmp *(x32_vdso_targets + 32)(%rip)
    .balign 8
end:
    .globl x32_vdso_end
x32_vdso_end:

    .section .note.GNU-stack, "", @progbits
