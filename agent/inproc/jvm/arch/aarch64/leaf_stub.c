/* Leaf probes are not supported on AArch64: compiled code calls the native methods. */
#include "agent/inproc/jvm/leaf.h"

uint32_t sj_arch_leaf_entry_bytes(uint64_t entry)
{
    (void)entry;
    return 0;
}

void sj_arch_leaf_emit(uint8_t stub[SJ_LEAF_STUB_BYTES], sj_record_kind kind, uint64_t muted,
                       uint64_t entry)
{
    (void)stub;
    (void)kind;
    (void)muted;
    (void)entry;
}

void sj_arch_leaf_close(uint8_t stub[SJ_LEAF_STUB_BYTES])
{
    (void)stub;
}

bool sj_arch_leaf_patch(uint64_t entry, uint64_t stub)
{
    (void)entry;
    (void)stub;
    return false;
}
