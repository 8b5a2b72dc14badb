#include "agent/inproc/objc_zombies/internal.h"

#include <string.h>

size_t sj_arch_trampolines_write(uint8_t *code, const uint64_t *targets)
{
    /* xor %eax,%eax; xor %edx,%edx; pxor %xmm0,%xmm0; pxor %xmm1,%xmm1; ret */
    static const uint8_t zero[] = {0x31, 0xc0, 0x31, 0xd2, 0x66, 0x0f, 0xef,
                                   0xc0, 0x66, 0x0f, 0xef, 0xc9, 0xc3};
    for (uint32_t i = 0; i < SJ_TRAMPOLINES; i++) {
        /* endbr64; jmp *word(%rip) */
        uint8_t jump[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
        uint8_t *trampoline = code + (size_t)i * SJ_TRAMPOLINE_BYTES;
        const int32_t distance =
            (int32_t)((const uint8_t *)&targets[i] - (trampoline + sizeof(jump)));
        memcpy(jump + 6, &distance, sizeof(distance));
        memcpy(trampoline, jump, sizeof(jump));
    }
    memcpy(code + (size_t)SJ_TRAMPOLINES * SJ_TRAMPOLINE_BYTES, zero, sizeof(zero));
    return (size_t)SJ_TRAMPOLINES * SJ_TRAMPOLINE_BYTES;
}

enum { SHARED_BYTES = 16, TARGET = 0, SELECTOR = 8 };

static void write_distance(uint8_t *field, const void *target)
{
    const int32_t distance = (int32_t)((const uint8_t *)target - (field + sizeof(int32_t)));
    memcpy(field, &distance, sizeof(distance));
}

/* Writes the code that trampolines of one kind share for freed receivers. A trampoline calls it, so
 * the return address is the end of the trampoline, by which it finds the trampoline's selector. */
static void write_shared(uint8_t *code, sj_receiver kind, int32_t to_words,
                         const sj_method_words *words)
{
    /* pop %r11; mov distance(%r11), %rsi or %rdx; jmp *handler(%rip) */
    uint8_t bytes[] = {0x41, 0x5b, 0x49, 0x8b, 0, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
    const int32_t distance = to_words + SELECTOR - SJ_METHOD_TRAMPOLINE_BYTES;
    bytes[4] = kind == SJ_RECEIVER_FIRST ? 0xb3 : 0x93;
    memcpy(bytes + 5, &distance, sizeof(distance));
    memcpy(code, bytes, sizeof(bytes));
    write_distance(code + 11, &words->handler);
}

bool sj_arch_method_trampolines_begin(uint8_t *code, const sj_method_words *words)
{
    const int32_t to_words = (int32_t)((const uint8_t *)words - code);
    for (uint32_t kind = 0; kind < SJ_RECEIVERS; kind++) {
        write_shared(code + (size_t)kind * SHARED_BYTES, (sj_receiver)kind, to_words, words);
    }
    return true;
}

void sj_arch_method_trampolines_write(uint8_t *at, uint32_t count, sj_receiver kind,
                                      const uint8_t *shared, const sj_method_words *words)
{
    /* endbr64; test %rdi, %rdi; je 1f; mov zombie(%rip), %r11; cmp %r11, (%rdi); je 2f; 1: jmp
     * *target(%rip); 2: call shared */
    uint8_t bytes[SJ_METHOD_TRAMPOLINE_BYTES] = {
        0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 0x0c, 0x4c, 0x8b, 0x1d, 0, 0, 0, 0,
        0x4c, 0x39, 0x1f, 0x74, 0x06, 0xff, 0x25, 0,    0,    0,    0,    0xe8, 0, 0, 0, 0};
    if (kind == SJ_RECEIVER_SECOND) {
        bytes[6] = 0xf6; /* %rsi */
        bytes[18] = 0x1e;
    }
    for (uint32_t i = 0; i < count; i++, at += SJ_METHOD_TRAMPOLINE_BYTES) {
        memcpy(at, bytes, sizeof(bytes));
        write_distance(at + 12, &words->zombie);
        write_distance(at + 23, at - (shared - (const uint8_t *)words) + TARGET);
        write_distance(at + 28, shared + (size_t)kind * SHARED_BYTES);
    }
}
