#include "xstate.h"
#include "user_memory.h"
#include "x32.h"

/* In the software bytes of the saved state, at 464: arch/x86/include/uapi/asm/sigcontext.h */
#define FP_XSTATE_MAGIC1 0x46505853U
#define FP_XSTATE_MAGIC2 0x46505845U
#define SOFTWARE_BYTES 464
#define LEGACY_SIZE 512

u64 xstate_size(u64 state) {
    u32 magic, size;
    copy_bytes(&magic, (const u8 *)state + SOFTWARE_BYTES, 4);
    copy_bytes(&size, (const u8 *)state + SOFTWARE_BYTES + 4, 4);
    return magic == FP_XSTATE_MAGIC1 ? size : LEGACY_SIZE;
}

#define LEGACY_AND_HEADER 576U
/* The legacy region, its header and AVX, with whose registers every processor with xsave begins. */
#define WITH_AVX 832U
/* In the header, at 512: the parts of the state that xrstor reads. */
#define HEADER 512
#define X87_AND_SSE 3
/* Tiles are some 8 KiB that few programs use; a handler that interrupts a call does not see them. */
#define TILES 0x60000U

/* What a frame has to carry. Asked once: CPUID leaves a virtual machine, which takes as long as a hundred
 * calls. Threads that ask at the same moment find the same; the size is written last. */
static struct { u32 features, size; } here;

static u32 size_here(void) {
    u32 size = __atomic_load_n(&here.size, __ATOMIC_ACQUIRE);
    if (size != 0) {
        return size;
    }
    u32 features, features_high;
    __asm__ volatile("xgetbv" : "=a"(features), "=d"(features_high) : "c"(0));
    features &= ~TILES;
    size = LEGACY_AND_HEADER;
    for (u32 i = 2; i < 32; i++) {
        if (features & (1U << i)) {
            u32 part_size = 0xd, offset, index = i, flags;
            __asm__ volatile("cpuid" : "+a"(part_size), "=b"(offset), "+c"(index), "=d"(flags));
            size = offset + part_size > size ? offset + part_size : size;
        }
    }
    here.features = features;
    __atomic_store_n(&here.size, size, __ATOMIC_RELEASE);
    return size;
}

/* The state that a frame has to carry, taken by hand: xsave in the kernel's form. */
u32 xstate_save(u8 *to, u32 room) {
    u32 size = size_here(), features = here.features;
    if (size + 4 > room) {
        features &= 7;
        size = WITH_AVX;
    }
    clear_bytes(to, size + 4);
    __asm__ volatile("xsave64 (%0)" : : "r"(to), "a"(features), "d"(0) : "memory");
    /* xsave leaves out the bits of registers that are all 0, and a handler that changes such a register in
     * its frame does not know of them (save_xstate_epilog, arch/x86/kernel/fpu/signal.c). */
    to[HEADER] |= X87_AND_SSE;
    u32 software[5] = {FP_XSTATE_MAGIC1, size + 4, features, 0, size};
    copy_bytes(to + SOFTWARE_BYTES, software, sizeof software);
    u32 end = FP_XSTATE_MAGIC2;
    copy_bytes(to + size, &end, 4);
    return size + 4;
}

int xstate_restore(u64 state) {
    u32 software[4];
    if (state == 0) {
        return 0;
    }
    /* Mark, size, and the features, of which the kernel has saved all that this thread may use. */
    copy_bytes(software, (const u8 *)state + SOFTWARE_BYTES, sizeof software);
    if (software[0] == FP_XSTATE_MAGIC1) {
        __asm__ volatile("xrstor64 (%0)" : : "r"(state), "a"(software[2]), "d"(software[3]) : "memory");
    } else {
        __asm__ volatile("fxrstor64 (%0)" : : "r"(state) : "memory");
    }
    return 1;
}
