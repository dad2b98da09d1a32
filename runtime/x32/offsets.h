/* What entry.S and C have to agree on; thread.c checks each number at compile time. */
#ifndef X32_OFFSETS_H
#define X32_OFFSETS_H

#define THREAD_SELF 0
#define THREAD_PROGRAM_RSP 8
#define THREAD_STACK_TOP 16
#define THREAD_PENDING 24
#define THREAD_HELD_COUNT 28
#define THREAD_HELD_MASK 32
#define THREAD_RESUME_RIP 40
#define THREAD_COUNTS 48
#define THREAD_TRAP_MASK 56
#define THREAD_PUTS_MASK_BACK 72
#define THREAD_VDSO_STACK 80
#define THREAD_VDSO_BACK 88
#define COUNTS_PLAIN 8

#define FRAME_R15 0
#define FRAME_R14 8
#define FRAME_R13 16
#define FRAME_R12 24
#define FRAME_RBP 32
#define FRAME_RBX 40
#define FRAME_R9 48
#define FRAME_R8 56
#define FRAME_R10 64
#define FRAME_RDX 72
#define FRAME_RSI 80
#define FRAME_RDI 88
#define FRAME_TRAPPED 96
#define FRAME_RAX 104
#define FRAME_RIP 112
#define FRAME_FLAGS 120

#define TRAPPED 1
#define TRAPPED_I386 2

#define FLAG_TRAP 0x100
#define FLAG_ALIGNMENT 0x40000

#define VDSO_FUNCTION_SIZE 16

#define STUB_SIZE 16
#define STUB_COUNT 4096
#define STUB_FIRST 32 /* the places before hold the file's headers (layout.ld) */

#endif
