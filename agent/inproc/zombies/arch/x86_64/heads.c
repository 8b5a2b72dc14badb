/* Design notes
 *
 * What runs at the entries of the allocator is inline: allocations count a word of the thread down,
 * frees compare the address with the pool. Only what concerns a guarded block calls a function,
 * as the entry was called: it returns to the caller, or calls the rest of the entry itself. */
#include "agent/inproc/zombies/internal.h"

#include <string.h>

enum { CALL_BYTES = 13 };

bool sj_heads_supported(void)
{
    return true;
}

/* movabs $function, %r11; jmp *%r11 */
static void emit_jump_to(sj_code_emitter *emitter, uint64_t function)
{
    uint8_t code[CALL_BYTES] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    memcpy(code + 2, &function, sizeof(function));
    sj_code_emit_bytes(emitter, code, sizeof(code));
}

/* subq $1, %fs:countdown; jg over the jump */
static void emit_countdown(sj_code_emitter *emitter, uint64_t function)
{
    uint8_t code[] = {0x64, 0x48, 0x83, 0x2c, 0x25, 0, 0, 0, 0, 1, 0x7f, CALL_BYTES};
    const char *thread = __builtin_thread_pointer();
    const int32_t offset = (int32_t)((const char *)&sj_zombie_countdown - thread);
    memcpy(code + 5, &offset, sizeof(offset));
    sj_code_emit_bytes(emitter, code, sizeof(code));
    emit_jump_to(emitter, function);
}

/* movabs $pool, %r11; mov %rdi, %rax; sub %r11, %rax; shr $shift, %rax; jne over the jump */
static void emit_range(sj_code_emitter *emitter, uint64_t function)
{
    uint8_t code[] = {0x49, 0xbb, 0,    0,    0,    0,    0,    0,    0, 0,    0x48,
                      0x89, 0xf8, 0x4c, 0x29, 0xd8, 0x48, 0xc1, 0xe8, 0, 0x75, CALL_BYTES};
    memcpy(code + 2, &sj_zombie_pool.base, sizeof(sj_zombie_pool.base));
    code[19] = (uint8_t)sj_zombie_pool.shift;
    sj_code_emit_bytes(emitter, code, sizeof(code));
    emit_jump_to(emitter, function);
}

static void emit_head(sj_code_emitter *emitter, sj_zombie_head head)
{
    switch (head) {
    case SJ_HEAD_MALLOC:
        emit_countdown(emitter, (uint64_t)(uintptr_t)sj_allocation_new);
        break;
    case SJ_HEAD_CALLOC:
        emit_countdown(emitter, (uint64_t)(uintptr_t)sj_allocation_new_zeroed);
        break;
    case SJ_HEAD_FREE:
        emit_range(emitter, (uint64_t)(uintptr_t)sj_allocation_free);
        break;
    case SJ_HEAD_REALLOC:
        emit_range(emitter, (uint64_t)(uintptr_t)sj_allocation_resize);
        break;
    case SJ_HEAD_USABLE_SIZE:
        emit_range(emitter, (uint64_t)(uintptr_t)sj_allocation_size);
        break;
    case SJ_HEAD_SIGACTION:
        emit_jump_to(emitter, (uint64_t)(uintptr_t)sj_faults_sigaction);
        break;
    case SJ_HEADS:
        break;
    }
}

void sj_heads_emit(void *context, sj_code_emitter *emitter, uint32_t index)
{
    const sj_zombie_region *region = context;
    for (uint32_t head = 0; head < SJ_HEADS; head++) {
        if (region->heads[head] == index + 1) {
            emit_head(emitter, (sj_zombie_head)head);
            if (!emitter->measuring) {
                sj_zombie_originals[head] = emitter->at;
            }
            return;
        }
    }
}
