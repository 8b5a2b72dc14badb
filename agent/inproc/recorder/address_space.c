/* Design notes
 *
 * RLIMIT_AS counts mapped bytes, whether or not they have memory. The arena has slots for hundreds
 * of threads; few programs have as many. A process that is limited when it starts gets an arena for
 * fewer threads. A process that limits itself later unmaps the chunks of slots that no thread has
 * come near. Later threads then find no slot, and are counted as refused.
 *
 * The program may map other memory into the resulting hole. So the arena is unmapped in two
 * parts. */
#include "agent/inproc/recorder/address_space.h"

#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/mman.h>
#include <sys/uio.h>

enum { PARTS = 2 }; /* parts of a mapped arena */
enum { SHARE = 8, LEAST_SLOTS = 16 };

uint64_t sj_address_space_limit(void)
{
    struct rlimit limit;
    return SJ_SYS(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit, 0, 0) == 0 ? limit.rlim_cur
                                                                        : UINT64_MAX;
}

bool sj_address_space_is_enough(uint32_t threads, uint32_t chunks_per_thread, uint64_t limit_bytes)
{
    return sj_arena_bytes(threads, chunks_per_thread) <= limit_bytes / SHARE;
}

uint32_t sj_address_space_threads(uint32_t threads, uint32_t chunks_per_thread,
                                  uint64_t limit_bytes)
{
    uint32_t fitting = threads;
    while (fitting > LEAST_SLOTS &&
           !sj_address_space_is_enough(fitting, chunks_per_thread, limit_bytes)) {
        fitting = fitting / 2 > LEAST_SLOTS ? fitting / 2 : (uint32_t)LEAST_SLOTS;
    }
    return fitting;
}

static uint64_t chunks_offset(uint32_t slot)
{
    const sj_arena_header *arena = sj_recorder.arena;
    return sj_arena_chunk_offset(arena->max_threads, arena->chunks_per_thread, slot, 0);
}

/* Prevents threads from claiming slots from `*most` on, or from the first slot whose page has no
 * memory, if that is higher. Stores the new number of claimable slots in `*most` and returns the
 * previous one. */
static uint32_t keep_slots(uint32_t *most)
{
    uint64_t counts = atomic_load(&sj_recorder.slot_counts);
    uint64_t kept = counts;
    do {
        const uint32_t backed = sj_recorder_backed_of(counts);
        const uint32_t wanted = backed > *most ? backed : *most;
        kept =
            wanted < sj_recorder_most_of(counts) ? sj_recorder_slot_counts(wanted, backed) : counts;
    } while (!atomic_compare_exchange_weak(&sj_recorder.slot_counts, &counts, kept));
    *most = sj_recorder_most_of(kept);
    return sj_recorder_most_of(counts);
}

void sj_recorder_limit_space(uint64_t limit_bytes)
{
    const sj_arena_header *arena = sj_recorder.arena;
    if (arena == NULL || atomic_load(&sj_recorder.armed) == 0 || sj_recorder_is_forked() ||
        arena->pid != sj_sys_pid()) {
        return;
    }
    uint32_t most =
        sj_address_space_threads(arena->max_threads, arena->chunks_per_thread, limit_bytes);
    const uint32_t before = keep_slots(&most);
    if (most < before) {
        (void)sj_sys_unmap((uint8_t *)sj_recorder.arena + chunks_offset(most),
                           chunks_offset(before) - chunks_offset(most));
    }
}

/* Writes the PARTS parts of the arena that are mapped: the part before the hole, and the rest. */
static void find_parts(struct iovec *parts)
{
    uint8_t *base = (uint8_t *)sj_recorder.arena;
    const uint64_t counted = chunks_offset(sj_recorder.arena->max_threads);
    const uint64_t end = chunks_offset(sj_recorder_most_of(atomic_load(&sj_recorder.slot_counts)));
    parts[0] = (struct iovec){.iov_base = base, .iov_len = end};
    parts[1] =
        (struct iovec){.iov_base = base + counted, .iov_len = sj_recorder.arena_bytes - counted};
}

void sj_recorder_unmap_arena(void)
{
    struct iovec parts[PARTS];
    find_parts(parts);
    for (int i = 0; i < PARTS; i++) {
        (void)sj_sys_unmap(parts[i].iov_base, parts[i].iov_len);
    }
    sj_recorder.arena = NULL;
}

void sj_recorder_replace_arena(void)
{
    struct iovec parts[PARTS];
    find_parts(parts);
    for (int i = 0; i < PARTS; i++) {
        (void)sj_sys_map(parts[i].iov_base, parts[i].iov_len, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    sj_recorder.arena = NULL;
}
