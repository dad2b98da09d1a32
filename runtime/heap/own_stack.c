#define _GNU_SOURCE
#include "own_stack.h"
#include "kernel.h"
#include "state.h"

#define FIRST_STACK 65536

static uint8_t first_stack[FIRST_STACK] __attribute__((aligned(16)));

/* `top`: behind the last byte of the other stack, a multiple of 16. */
void aside_switch(void (*function)(void *), void *argument, void *top) __attribute__((visibility("hidden")));

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
        ".hidden aside_switch\n"
        ".globl aside_switch\n"
        ".type aside_switch, @function\n"
        "aside_switch:\n"
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
        ".size aside_switch, . - aside_switch\n");
#else
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden aside_switch\n"
        ".globl aside_switch\n"
        ".type aside_switch, @function\n"
        "aside_switch:\n"
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
        ".size aside_switch, . - aside_switch\n");
#endif

void aside_call_first(void (*function)(void *), void *argument) {
    aside_switch(function, argument, first_stack + sizeof first_stack);
}

void aside_call(void (*function)(void *), void *argument) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = thread->stream;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    int is_aside = here - (uintptr_t)first_stack < sizeof first_stack ||
                   (stream != NULL && here - (uintptr_t)stream->own_stack < OWN_STACK);
    if (is_aside) {
        function(argument);
        return;
    }
    int error = errno;
    uint64_t before = kernel_hold_signals();
    if (stream != NULL) {
        aside_switch(function, argument, stream->own_stack + OWN_STACK);
    } else {
        function(argument);
    }
    kernel_allow_signals(before);
    errno = error;
}
