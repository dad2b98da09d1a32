/*
 * Stack switching for x86-64, x32 and i386.
 *
 *   void widthwise_sim_switch(void **save, void *load);
 *
 * Keeps the registers a callee must preserve on the present stack, stores the stack pointer at *save, takes `load` as the
 * stack pointer, and takes the registers kept there. The call returns when another switch loads the saved stack
 * pointer.
 *
 * What is kept, by ABI (System V psABI for AMD64, figure 3.4; for i386, table 2.3): see each part below. All other
 * registers are the caller's to save around any call. Control words (mxcsr, x87) are left as they are.
 *
 * The return address is popped and jumped to rather than returned to: the processor's return predictor expects the caller of
 * the present stack, and would be wrong every time.
 *
 *   widthwise_sim_begin
 *
 * Where a new stack's first switch goes: calls an entry function that stands in a preserved register with the argument
 * that stands in another (first_frame.hpp has the layout). The frame above it is marked as the outermost.
 *
 * This file carries no note of IBT or shadow stacks, on purpose: the linker then marks the whole program as not using
 * them, which is right, because a switched stack has no shadow.
 */
        .text

#if defined(__x86_64__)
/*
 * x86-64 and x32. In: rdi = save, rsi = load. Frame from the stack pointer up:
 *   +0 r15  +8 r14  +16 r13  +24 r12  +32 rbx  +40 rbp  +48 return address
 * x32 differs in one thing only: pointers in memory have four bytes. Pushes are still of eight; the upper half of rsp is
 * zero, and writing esp zeroes it.
 */
        .globl  widthwise_sim_switch
        .hidden widthwise_sim_switch
        .type   widthwise_sim_switch, @function
        .p2align 4
widthwise_sim_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        pushq   %r15
        .cfi_adjust_cfa_offset 8
#if defined(__ILP32__)
        movl    %esp, (%rdi)
        movl    %esi, %esp
#else
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
#endif
        popq    %r15
        .cfi_adjust_cfa_offset -8
        popq    %r14
        .cfi_adjust_cfa_offset -8
        popq    %r13
        .cfi_adjust_cfa_offset -8
        popq    %r12
        .cfi_adjust_cfa_offset -8
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        jmp     *%rcx
        .cfi_endproc
        .size   widthwise_sim_switch, . - widthwise_sim_switch

/* r12 = entry function, r13 = its argument; rsp is a multiple of 16. */
        .globl  widthwise_sim_begin
        .hidden widthwise_sim_begin
        .type   widthwise_sim_begin, @function
        .p2align 4
widthwise_sim_begin:
        .cfi_startproc
        .cfi_undefined rip
        xorl    %ebp, %ebp
        movq    %r13, %rdi
        call    *%r12
        ud2
        .cfi_endproc
        .size   widthwise_sim_begin, . - widthwise_sim_begin

#elif defined(__i386__)
/*
 * i386. In: 4(%esp) = save, 8(%esp) = load. Frame from the stack pointer up:
 *   +0 edi  +4 esi  +8 ebx  +12 ebp  +16 return address
 */
        .globl  widthwise_sim_switch
        .hidden widthwise_sim_switch
        .type   widthwise_sim_switch, @function
        .p2align 4
widthwise_sim_switch:
        .cfi_startproc
        movl    4(%esp), %eax
        movl    8(%esp), %edx
        pushl   %ebp
        .cfi_adjust_cfa_offset 4
        pushl   %ebx
        .cfi_adjust_cfa_offset 4
        pushl   %esi
        .cfi_adjust_cfa_offset 4
        pushl   %edi
        .cfi_adjust_cfa_offset 4
        movl    %esp, (%eax)
        movl    %edx, %esp
        popl    %edi
        .cfi_adjust_cfa_offset -4
        popl    %esi
        .cfi_adjust_cfa_offset -4
        popl    %ebx
        .cfi_adjust_cfa_offset -4
        popl    %ebp
        .cfi_adjust_cfa_offset -4
        popl    %ecx
        .cfi_adjust_cfa_offset -4
        .cfi_register eip, ecx
        jmp     *%ecx
        .cfi_endproc
        .size   widthwise_sim_switch, . - widthwise_sim_switch

/* ebx = entry function, esi = its argument; esp is a multiple of 16. */
        .globl  widthwise_sim_begin
        .hidden widthwise_sim_begin
        .type   widthwise_sim_begin, @function
        .p2align 4
widthwise_sim_begin:
        .cfi_startproc
        .cfi_undefined eip
        xorl    %ebp, %ebp
        subl    $12, %esp
        pushl   %esi
        call    *%ebx
        ud2
        .cfi_endproc
        .size   widthwise_sim_begin, . - widthwise_sim_begin
#endif

        .section .note.GNU-stack, "", @progbits
