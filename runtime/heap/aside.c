#include "aside.h"

/* The frame pointer leads back to the first stack, for the call's return and for unwinders (System V ABI: the
 * stack is aligned to 16 bytes at a call). */
#ifdef __x86_64__
/* x32's pointers come in the lower halves of the registers. */
#ifdef __ILP32__
#define TAKE_TOP "    movl %edx, %esp\n"
#define TAKE_FUNCTION "    movl %edi, %eax\n"
#else
#define TAKE_TOP "    movq %rdx, %rsp\n"
#define TAKE_FUNCTION "    movq %rdi, %rax\n"
#endif
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden aside_call\n"
        ".globl aside_call\n"
        ".type aside_call, @function\n"
        "aside_call:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n" TAKE_TOP TAKE_FUNCTION "    movq %rsi, %rdi\n"
        "    call *%rax\n"
        "    leave\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size aside_call, . - aside_call\n");
#else
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden aside_call\n"
        ".globl aside_call\n"
        ".type aside_call, @function\n"
        "aside_call:\n"
        "    .cfi_startproc\n"
        "    pushl %ebp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    .cfi_offset %ebp, -8\n"
        "    movl %esp, %ebp\n"
        "    .cfi_def_cfa_register %ebp\n"
        "    movl 8(%ebp), %eax\n"
        "    movl 12(%ebp), %ecx\n"
        "    movl 16(%ebp), %esp\n"
        "    subl $12, %esp\n"
        "    pushl %ecx\n"
        "    call *%eax\n"
        "    leave\n"
        "    .cfi_def_cfa %esp, 4\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size aside_call, . - aside_call\n");
#endif
