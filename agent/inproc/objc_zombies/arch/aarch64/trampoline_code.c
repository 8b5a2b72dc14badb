#include "agent/inproc/objc_zombies/internal.h"

size_t sj_arch_trampolines_write(uint8_t *code, const uint64_t *targets)
{
    (void)code;
    (void)targets;
    return 0;
}

bool sj_arch_method_trampolines_begin(uint8_t *code, const sj_method_words *words)
{
    (void)code;
    (void)words;
    return false;
}

void sj_arch_method_trampolines_write(uint8_t *at, uint32_t count, sj_receiver kind,
                                      const uint8_t *shared, const sj_method_words *words)
{
    (void)at;
    (void)count;
    (void)kind;
    (void)shared;
    (void)words;
}
