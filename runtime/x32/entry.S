/*
 * The entry points: from the kernel into the runtime, from the program into the runtime and back, and the places in which a
 * signal may find it. signals.c knows the labels; to move an instruction across one changes what is safe.
 *
 * From the program's side a system call changes rax, rcx and r11 and nothing else: not the flags, not the stack below
 * its pointer (the red zone), not a vector register. So the runtime is built without vector instructions, runs on a
 * stack of its own, and finds that through GS, which x32 programs leave alone.
 */
#include "offsets.h"

    .text
    .globl _start
    .type _start, @function
_start:
    xor %ebp, %ebp
    mov %rsp, %rdi
    and $-16, %rsp
    call x32_main
    ud2

/* noreturn x32_continue_on(u64 stack_top, u64 *cells, u64 first_faults, void (*begin)(u64 *, u64)) */
    .globl x32_continue_on
    .type x32_continue_on, @function
x32_continue_on:
    mov %rdi, %rsp
    mov %rsi, %rdi
    mov %rdx, %rsi
    call *%rcx
    ud2

/* The runtime's own accesses need not be aligned, whatever the program has asked for (AC). The flags are at the stack
 * pointer. */
.macro allow_unaligned
    testl $FLAG_ALIGNMENT, (%rsp)
    jz 9f
    pushfq
    andl $~FLAG_ALIGNMENT, (%rsp)
    popfq
9:
.endm

/* Onto the runtime's own stack, with the program's registers as struct frame has them. */
.macro take_frame
    mov %rsp, %gs:THREAD_PROGRAM_RSP
    mov %gs:THREAD_STACK_TOP, %rsp
    pushfq
    andl $~FLAG_TRAP, (%rsp) /* a tracer's single step; for the program's own there is thread->stepping */
    allow_unaligned
    cld
    push %rcx
    push %rax
    push %r11
    push %rdi
    push %rsi
    push %rdx
    push %r10
    push %r8
    push %r9
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
.endm

/* From a rewritten site, through its stub: rcx is where the program goes on, rax the number. */
    .globl x32_enter
x32_enter:
    mov $0, %r11d
    jmp 1f
/* From SIGSYS: the same, of a site that has not been rewritten. */
    .globl x32_enter_trapped
x32_enter_trapped:
    mov $TRAPPED, %r11d
    jmp 1f
/* From SIGSYS by `int $0x80`. */
    .globl x32_enter_i386
x32_enter_i386:
    mov $TRAPPED_I386, %r11d
1:  take_frame
    mov %rsp, %rdi
    call x32_dispatch

/* Back to the program, from the frame that rsp points to. A signal that finds us between here and x32_leave_end comes
 * after the call: the program's registers are those of the frame. */
    .globl x32_leave
x32_leave:
    cmpl $0, %gs:THREAD_PENDING
    je 2f
    cmpl $0, %gs:THREAD_HELD_COUNT
    jne x32_leave_by_handler
    /* The last thing: the mask as the program has it. What was put off is delivered on this call's way back. */
    mov $14, %eax
    mov $2, %edi
    mov %gs:THREAD_SELF, %rsi
    add $THREAD_HELD_MASK, %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    .globl x32_leave_masked
x32_leave_masked:
    movl $0, %gs:THREAD_PENDING
2:  mov FRAME_R15(%rsp), %r15
    mov FRAME_R14(%rsp), %r14
    mov FRAME_R13(%rsp), %r13
    mov FRAME_R12(%rsp), %r12
    mov FRAME_RBP(%rsp), %rbp
    mov FRAME_RBX(%rsp), %rbx
    mov FRAME_R9(%rsp), %r9
    mov FRAME_R8(%rsp), %r8
    mov FRAME_R10(%rsp), %r10
    mov FRAME_RDX(%rsp), %rdx
    mov FRAME_RSI(%rsp), %rsi
    mov FRAME_RDI(%rsp), %rdi
    mov FRAME_RAX(%rsp), %rax
    mov FRAME_RIP(%rsp), %rcx
    mov FRAME_FLAGS(%rsp), %r11
    push %r11
    popfq
    mov %gs:THREAD_PROGRAM_RSP, %rsp
    jmp *%rcx
    .globl x32_leave_end
x32_leave_end:
x32_leave_by_handler:
    mov %rsp, %rdi
    call x32_deliver_held
    ud2

/* Where a function of the kernel's vDSO returns to when a signal came in it (vdso.h). All is blocked since. */
    .globl x32_vdso_left
x32_vdso_left:
    mov %gs:THREAD_VDSO_BACK, %rcx
    xor %r11d, %r11d
    take_frame
    jmp x32_leave

/* void x32_begin_handler(i32 signal, struct siginfo64 *, struct ucontext64 *): the kernel begins a handler with the
 * program's AC. */
    .globl x32_begin_handler
x32_begin_handler:
    pushfq
    allow_unaligned
    lea 8(%rsp), %rsp
    jmp x32_on_signal

/* noreturn x32_take_trap(struct frame *): from a handler of ours into the runtime, of a call that has trapped. The mask is
 * the program's, as the handler of a trap lets in what the program does. What has come meanwhile is held, and then all
 * stays blocked; or was put back, and then the mask is put in force again, on the runtime's own stack. */
    .globl x32_take_trap
x32_take_trap:
    mov %rdi, %rsp
    .globl x32_trap_masked
x32_trap_masked:
    cmpl $0, %gs:THREAD_PUTS_MASK_BACK
    je x32_trap_taken
    movl $0, %gs:THREAD_PUTS_MASK_BACK
    cmpl $0, %gs:THREAD_PENDING
    jne x32_trap_taken
    mov $14, %eax
    mov $2, %edi
    mov %gs:THREAD_SELF, %rsi
    add $THREAD_TRAP_MASK, %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    .globl x32_trap_taken
x32_trap_taken:
    mov %rsp, %rdi
    call x32_dispatch
    jmp x32_leave

/* noreturn x32_enter_handler(struct frame *): from a handler of ours into one of the program's. */
    .globl x32_enter_handler
x32_enter_handler:
    mov %rdi, %rsp
    jmp x32_leave

/* long x32_gate_now(long number, const u64 arguments[6]): the call that a signal may interrupt. If one was put off before
 * the kernel was entered, or the kernel would restart, the answer is -ERESTART, nothing was done, and the whole call is
 * made again after the handler. */
    .globl x32_gate_now
    .type x32_gate_now, @function
x32_gate_now:
    mov %rdi, %rax
    mov %rsi, %rcx
    mov 0(%rcx), %rdi
    mov 8(%rcx), %rsi
    mov 16(%rcx), %rdx
    mov 24(%rcx), %r10
    mov 32(%rcx), %r8
    mov 40(%rcx), %r9
    .globl x32_gate_check
x32_gate_check:
    cmpl $0, %gs:THREAD_PENDING
    jne x32_gate_given_up
    syscall
    .globl x32_gate_done
x32_gate_done:
    ret
    .globl x32_gate_given_up
x32_gate_given_up:
    mov $-512, %rax
    ret

/* long x32_spawn(const u64 registers[6], struct thread *child): clone or clone3 with a stack and a block of its own for
 * the child. registers: number, then rdi rsi rdx r10 r8. Every signal is blocked. The child finds a copy of the
 * program's frame at the top of its own stack. */
    .globl x32_spawn
    .type x32_spawn, @function
x32_spawn:
    push %r12
    mov %rsi, %r12
    mov %rdi, %rcx
    mov 0(%rcx), %rax
    mov 8(%rcx), %rdi
    mov 16(%rcx), %rsi
    mov 24(%rcx), %rdx
    mov 32(%rcx), %r10
    mov 40(%rcx), %r8
    syscall
    test %rax, %rax
    jz 3f
    pop %r12
    ret
3:  cmpb $0, x32_has_wrgsbase(%rip)
    je 4f
    wrgsbase %r12
    jmp 5f
4:  mov $158, %eax
    mov $0x1001, %edi
    mov %r12, %rsi
    syscall
5:  xor %ebp, %ebp
    mov %rsp, %rdi
    call x32_thread_begin
    jmp x32_leave

/* noreturn x32_leave_area(u32 *has_left, u64 status, u64 number): a thread ends whose area another one may take from the
 * store on; nothing of it is touched after that. */
    .globl x32_leave_area
x32_leave_area:
    mov %rdi, %rcx
    mov %rsi, %rdi
    mov %rdx, %rax
    movl $1, (%rcx)
    syscall
    ud2

/* noreturn x32_end_thread(void *area, u64 size, u64 status, u64 number): a thread takes its own stack away and ends, by exit or
 * exit_group. */
    .globl x32_end_thread
x32_end_thread:
    mov %rdx, %rbx
    mov %rcx, %r12
    mov $11, %eax
    syscall
    mov %rbx, %rdi
    mov %r12, %rax
    syscall
    ud2

/* noreturn x32_sigreturn(struct ucontext64 *): as the kernel's own return from a handler. All but faults are blocked, and a
 * fault that is sent meanwhile is put back, here as before. */
    .globl x32_sigreturn
x32_sigreturn:
    mov %rdi, %rsp
    movl $0, %gs:THREAD_PENDING
    .globl x32_restorer
x32_restorer:
    mov $15, %eax
    syscall
    .globl x32_sigreturn_end
x32_sigreturn_end:
    ud2

/* noreturn x32_restore(const struct sigcontext *, const u64 *mask): the same by hand, for where the kernel's is not to be had
 * (valgrind). A signal that comes here, as soon as the mask lets it in, finds the program where it goes on. */
    .globl x32_restore
x32_restore:
    movl $0, %gs:THREAD_PENDING
    mov %rdi, %rbx
    mov $14, %eax
    mov $2, %edi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    mov %rbx, %rdi
    mov 0(%rdi), %r8
    mov 8(%rdi), %r9
    mov 16(%rdi), %r10
    mov 24(%rdi), %r11
    mov 32(%rdi), %r12
    mov 40(%rdi), %r13
    mov 48(%rdi), %r14
    mov 56(%rdi), %r15
    mov 72(%rdi), %rsi
    mov 80(%rdi), %rbp
    mov 88(%rdi), %rbx
    mov 96(%rdi), %rdx
    mov 104(%rdi), %rax
    mov 128(%rdi), %rcx
    mov %rcx, %gs:THREAD_RESUME_RIP
    mov 120(%rdi), %rcx
    mov %rcx, %gs:THREAD_PROGRAM_RSP
    mov 136(%rdi), %rcx
    push %rcx
    mov 112(%rdi), %rcx
    mov 64(%rdi), %rdi
    popfq
    mov %gs:THREAD_PROGRAM_RSP, %rsp
    jmp *%gs:THREAD_RESUME_RIP
    .globl x32_restore_end
x32_restore_end:
    ud2

/* noreturn x32_start(sp, entry): registers as the kernel leaves them at execve (ELF_PLAT_INIT). */
    .globl x32_start
x32_start:
    mov %rdi, %rsp
    mov %rsi, %r11
    xor %eax, %eax
    xor %ebx, %ebx
    xor %ecx, %ecx
    xor %edx, %edx
    xor %esi, %esi
    xor %edi, %edi
    xor %ebp, %ebp
    xor %r8d, %r8d
    xor %r9d, %r9d
    xor %r10d, %r10d
    xor %r12d, %r12d
    xor %r13d, %r13d
    xor %r14d, %r14d
    xor %r15d, %r15d
    jmp *%r11

/* size_t x32_copy(void *to, const void *from, size_t size): what is left when one of the two could not be touched. */
    .globl x32_copy
    .type x32_copy, @function
x32_copy:
    mov %rdx, %rcx
    .globl x32_copy_touch
x32_copy_touch:
    rep movsb
    jmp x32_copy_done
x32_exchange_touch:
    lock cmpxchg %edx, (%rdi)
    setne %cl
    movzbl %cl, %ecx
    .globl x32_copy_done
x32_copy_done:
    mov %rcx, %rax
    ret

/* long x32_exchange(u32 *at, u32 expected, u32 wanted): 0 done, 1 there was something else, 2 it cannot be touched. */
    .globl x32_exchange
x32_exchange:
    mov %esi, %eax
    mov $2, %ecx
    jmp x32_exchange_touch

/* long x32_i386(number, a, b, c, d, e, f): `int $0x80`, the i386 entry, which serves every compat handler the kernel has. A
 * signal may interrupt it like a call through x32_gate_now. Where the kernel has no IA32_EMULATION it faults, and the
 * answer is NO_I386_ENTRY. x32_i386_at_once makes the call though a signal is held already. */
    .globl x32_i386_at_once
    .type x32_i386_at_once, @function
x32_i386_at_once:
    mov $1, %r11d
    jmp 1f
    .globl x32_i386
    .type x32_i386, @function
x32_i386:
    xor %r11d, %r11d
1:  push %rbx
    push %rbp
    mov %rdi, %rax
    mov %rsi, %rbx
    mov %rcx, %r10
    mov %rdx, %rcx
    mov %r10, %rdx
    mov %r8, %rsi
    mov %r9, %rdi
    mov 24(%rsp), %rbp /* above two registers and the return address */
    test %r11d, %r11d
    jnz x32_i386_touch
    .globl x32_i386_check
x32_i386_check:
    cmpl $0, %gs:THREAD_PENDING
    jne x32_i386_given_up
    .globl x32_i386_touch
x32_i386_touch:
    int $0x80
    .globl x32_i386_done
x32_i386_done:
    movslq %eax, %rax
    pop %rbp
    pop %rbx
    ret
    .globl x32_i386_missing
x32_i386_missing:
    mov $-4095, %rax /* dispatch.c */
    pop %rbp
    pop %rbx
    ret
    .globl x32_i386_given_up
x32_i386_given_up:
    mov $-512, %rax
    pop %rbp
    pop %rbx
    ret
x32_entry_end:

/* valgrind names code by symbols that are functions and have a size. Code without a name counts for the program. */
    .macro sized function, end
    .type \function, @function
    .size \function, \end - \function
    .endm
    sized _start, x32_continue_on
    sized x32_continue_on, x32_enter
    sized x32_enter, x32_enter_trapped
    sized x32_enter_trapped, x32_enter_i386
    sized x32_enter_i386, x32_leave
    sized x32_leave, x32_leave_masked
    sized x32_leave_masked, x32_leave_end
    sized x32_leave_end, x32_vdso_left
    sized x32_leave_by_handler, x32_vdso_left
    sized x32_vdso_left, x32_begin_handler
    sized x32_begin_handler, x32_take_trap
    sized x32_take_trap, x32_trap_masked
    sized x32_trap_masked, x32_trap_taken
    sized x32_trap_taken, x32_enter_handler
    sized x32_enter_handler, x32_gate_now
    sized x32_gate_now, x32_gate_check
    sized x32_gate_check, x32_gate_done
    sized x32_gate_done, x32_gate_given_up
    sized x32_gate_given_up, x32_spawn
    sized x32_spawn, x32_leave_area
    sized x32_leave_area, x32_end_thread
    sized x32_end_thread, x32_sigreturn
    sized x32_sigreturn, x32_restorer
    sized x32_restorer, x32_sigreturn_end
    sized x32_sigreturn_end, x32_restore
    sized x32_restore, x32_restore_end
    sized x32_restore_end, x32_start
    sized x32_start, x32_copy
    sized x32_copy, x32_copy_touch
    sized x32_copy_touch, x32_exchange_touch
    sized x32_exchange_touch, x32_copy_done
    sized x32_copy_done, x32_exchange
    sized x32_exchange, x32_i386_at_once
    sized x32_i386_at_once, x32_i386
    sized x32_i386, x32_i386_check
    sized x32_i386_check, x32_i386_touch
    sized x32_i386_touch, x32_i386_done
    sized x32_i386_done, x32_i386_missing
    sized x32_i386_missing, x32_i386_given_up
    sized x32_i386_given_up, x32_entry_end

/* Room for the stubs of rewritten sites (sites.c). In the runtime's own text, so that it is above 4 GiB, where system
 * calls are let through, and within reach of x32_enter. */
    .section .stubs, "ax", @progbits
    .globl x32_stubs
    .set x32_stubs, . - STUB_FIRST * STUB_SIZE /* layout.ld: the file's headers are there */
    .fill (STUB_COUNT - STUB_FIRST) * STUB_SIZE, 1, 0xcc
    .globl x32_stubs_end
x32_stubs_end:

    .section .note.GNU-stack, "", @progbits
