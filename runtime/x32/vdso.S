/*
 * What AT_SYSINFO_EHDR shows the program: a shared object of one page, ELFCLASS32, whose functions jump to those of the
 * kernel's own 64-bit vDSO, once they have noted where the return address lies (vdso.h). Timespec and timeval are the
 * same in both widths, and so is the calling convention of what they take. The addresses at x32_vdso_targets are filled in
 * at the start (vdso.c); the page is copied below 4 GiB.
 */
#include "offsets.h"

#define AT(label) (label - x32_vdso)

    .section .rodata
    .balign 8
    .globl x32_vdso
x32_vdso:
    /* Elf32_Ehdr */
    .byte 0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
    .short 3, 62
    .long 1, 0, AT(program_headers), 0, 0
    .short 52, 32, 3, 40, 0, 0
program_headers:
    .long 1, 0, 0, 0, AT(end), AT(end), 5, 0x1000
    .long 2, AT(dynamic), AT(dynamic), AT(dynamic), AT(dynamic_end) - AT(dynamic), AT(dynamic_end) - AT(dynamic), 4, 4
    .long 0x6474e550, AT(unwind), AT(unwind), AT(unwind), AT(unwind_end) - AT(unwind), AT(unwind_end) - AT(unwind), 4, 4
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
    .long name_##name - strings, AT(name), VDSO_FUNCTION_SIZE; \
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
/* .eh_frame_hdr and .eh_frame: throughout the functions the return address is at the stack pointer. */
unwind:
    .byte 1, 0x1b, 0x03, 0x3b /* version; pcrel sdata4, udata4, datarel sdata4 */
    .long unwind_common - .
    .long 1
    .long functions - unwind, unwind_functions - unwind
unwind_common:
    .long unwind_functions - unwind_common - 4, 0
    .byte 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b /* factors 1 and -8; rip; pcrel sdata4 */
    .byte 0x0c, 7, 8, 0x90, 1                  /* DW_CFA_def_cfa rsp + 8; DW_CFA_offset rip, -8 */
    .balign 4
unwind_functions:
    .long unwind_functions_end - unwind_functions - 4, . - unwind_common
    .long functions - ., end - functions
    .byte 0
    .balign 4
unwind_functions_end:
    .long 0
unwind_end:
#define FUNCTION(name, target) \
    .balign VDSO_FUNCTION_SIZE; \
name: \
    mov %rsp, %gs:THREAD_VDSO_STACK; \
    jmp *(x32_vdso_targets + target)(%rip)
    .balign VDSO_FUNCTION_SIZE
    .globl x32_vdso_functions
x32_vdso_functions:
functions:
    FUNCTION(clock_gettime, 0)
    FUNCTION(gettimeofday, 8)
    FUNCTION(time, 16)
    FUNCTION(clock_getres, 24)
    FUNCTION(getcpu, 32)
    .balign VDSO_FUNCTION_SIZE
end:
    .globl x32_vdso_end
x32_vdso_end:

    .section .note.GNU-stack, "", @progbits
