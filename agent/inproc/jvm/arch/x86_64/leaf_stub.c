/* Design notes
 *
 * HotSpot's compiled code passes the first int argument in %esi, and expects only %rsp, %rbp, %r12
 * and %r15 to be preserved. The wrapper of a native method begins with a stack overflow check, mov
 * %eax, -N(%rsp). This instruction has 7 bytes and is aligned to 8 bytes, so one store can replace
 * it. HotSpot itself replaces it by a jump when it discards the wrapper. */
#include "agent/inproc/jvm/leaf.h"

#include "agent/inproc/recorder/recorder.h"

#include <string.h>

enum { BANG_BYTES = 7, JUMP_BYTES = 5, JUMP = 0xe9, LEAVE_BIT = 0x40 };

uint32_t sj_arch_leaf_entry_bytes(uint64_t entry)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)entry;
    int32_t displacement;
    if ((entry & 7) != 0 || code[0] != 0x89 || code[1] != 0x84 || code[2] != 0x24) {
        return 0;
    }
    memcpy(&displacement, code + 3, sizeof(displacement));
    return displacement < 0 ? BANG_BYTES : 0;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

static uint8_t *put_jump(uint8_t *at, uint64_t target)
{
    const int32_t displacement = (int32_t)(target - ((uint64_t)(uintptr_t)at + JUMP_BYTES));
    *at++ = JUMP;
    return put(at, &displacement, sizeof(displacement));
}

static uint32_t cursor_offset(void)
{
    uint64_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    return (uint32_t)((uint64_t)(uintptr_t)&sj_recorder_self.cursor - thread_pointer);
}

/* Writes code that returns if the function is muted. `at` is the start of the stub. */
static uint8_t *put_muted(uint8_t *at, uint64_t muted)
{
    static const uint8_t load[] = {0x89, 0xf0,              /* mov %esi, %eax */
                                   0x3d};                   /* cmp $..., %eax */
    static const uint8_t skip[] = {0x73, 2 + 8 + 4 + 2 + 1, /* jae over the ret */
                                   0x48, 0xb9};             /* movabs $..., %rcx */
    static const uint8_t test[] = {0x80, 0x3c, 0x01, 0x00,  /* cmpb $0, (%rcx,%rax) */
                                   0x74, 0x01,              /* je over the ret */
                                   0xc3};                   /* ret */
    const uint32_t limit = muted != 0 ? SJ_AGENT_STATE_MUTED_FUNCTIONS : 0;
    at = put(at, load, sizeof(load));
    at = put(at, &limit, sizeof(limit));
    at = put(at, skip, sizeof(skip));
    at = put(at, &muted, sizeof(muted));
    return put(at, test, sizeof(test));
}

void sj_arch_leaf_emit(uint8_t stub[SJ_LEAF_STUB_BYTES], sj_record_kind kind, uint64_t muted,
                       uint64_t entry)
{
    static const uint8_t reserve[] = {0x0f, 0x31,                          /* rdtsc */
                                      0xb9, 0x10, 0x00, 0x00, 0x00,        /* mov $16, %ecx */
                                      0x64, 0x48, 0x0f, 0xc1, 0x0c, 0x25}; /* xadd %rcx, %fs:... */
    static const uint8_t test[] = {0xf7, 0xc1, 0x00, 0xf0, 0x00, 0x00,     /* test $0xf000, %ecx */
                                   0x74, 0x00};                            /* jz slow */
    static const uint8_t ticks[] = {0x0f, 0xb7, 0xd2,                      /* movzwl %dx, %edx */
                                    0x48, 0xc1, 0xe2, 0x20,                /* shl $32, %rdx */
                                    0x48, 0x09, 0xd0,                      /* or %rdx, %rax */
                                    0x48, 0x89, 0x01};                     /* mov %rax, (%rcx) */
    static const uint8_t as_leave[] = {0x81, 0xce, 0, 0, 0, LEAVE_BIT};    /* or $..., %esi */
    static const uint8_t tag[] = {0x48, 0xc1, 0xe6, 0x20,                  /* shl $32, %rsi */
                                  0x48, 0x89, 0x71, 0x08,                  /* mov %rsi, 8(%rcx) */
                                  0xc3};                                   /* ret */
    const uint32_t offset = cursor_offset();
    uint8_t *at = put(put_muted(stub, muted), reserve, sizeof(reserve));
    at = put(at, &offset, sizeof(offset));
    at = put(at, test, sizeof(test));
    uint8_t *slow = at - 1;
    at = put(at, ticks, sizeof(ticks));
    if (kind == SJ_RECORD_LEAVE) {
        at = put(at, as_leave, sizeof(as_leave));
    }
    at = put(at, tag, sizeof(tag));
    *slow = (uint8_t)(at - (slow + 1));
    at = put(at, (const void *)(uintptr_t)entry, BANG_BYTES);
    (void)put_jump(at, entry + BANG_BYTES);
}

void sj_arch_leaf_close(uint8_t stub[SJ_LEAF_STUB_BYTES])
{
    enum { SHORT_JUMP = 0xeb, JUMP_IF_FULL_AT = 26 + 23, SHORT_BYTES = 2 };
    /* Offset of the copied check and the jump to the wrapper, the target of the branch to `slow`.
     */
    const uint32_t wrapper_at = JUMP_IF_FULL_AT + SHORT_BYTES + stub[JUMP_IF_FULL_AT + 1];
    const uint16_t jump = (uint16_t)(SHORT_JUMP | (wrapper_at - SHORT_BYTES) << 8);
    atomic_store((_Atomic uint16_t *)(void *)stub, jump);
}

static uint64_t replace_by_jump(uint64_t entry, uint64_t stub, uint64_t instruction)
{
    const int32_t displacement = (int32_t)(stub - (entry + JUMP_BYTES));
    uint8_t bytes[sizeof(instruction)];
    memcpy(bytes, &instruction, sizeof(instruction));
    bytes[0] = JUMP;
    memcpy(bytes + 1, &displacement, sizeof(displacement));
    memcpy(&instruction, bytes, sizeof(instruction));
    return instruction;
}

bool sj_arch_leaf_patch(uint64_t entry, uint64_t stub)
{
    const int64_t distance = (int64_t)(stub - (entry + JUMP_BYTES));
    if (distance != (int32_t)distance) {
        return false;
    }
    uint64_t expected = *(const volatile uint64_t *)(uintptr_t)entry;
    return sj_arch_leaf_entry_bytes(entry) != 0 &&
           atomic_compare_exchange_strong((_Atomic uint64_t *)(uintptr_t)entry, &expected,
                                          replace_by_jump(entry, stub, expected));
}
