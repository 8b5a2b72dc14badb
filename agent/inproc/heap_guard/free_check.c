/* Design notes
 *
 * glibc keeps two words before a block: the size of the chunk before it, and the size of its own
 * chunk with three flags. The chunk after it has the flag "the chunk before is in use". An address
 * is reported only if its alignment or these words are impossible for a block. */
#include "agent/inproc/heap_guard/free_check.h"

#include "agent/abi/page.h"
#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/trace.h"

enum {
    HEADER_BYTES = 16,
    LEAST_CHUNK_BYTES = 32,
    ALIGNMENT = 16,
    WORD = sizeof(uint64_t),
    FLAGS = 7,
    FLAG_BEFORE_IN_USE = 1,
    FLAG_MAPPED = 2,
    MOST_SIZE_BITS = 46
};

static bool is_checking;

bool sj_free_check_begin(const sj_zombie_region *region)
{
    const bool is_c_library = region->heap_entries[SJ_ENTRY_SIGACTION] != 0 &&
                              region->parts[SJ_ENTRY_SIGACTION] == SJ_HEAP_ALLOCATOR;
    is_checking = is_c_library && region->settings.one_in != 0;
    return is_checking;
}

/* True if the chunk after this one says that this one is in use, or begins in another page. Does
 * not read another page: it may not be mapped if the address is not a block. */
static bool is_in_use(uint64_t address, uint64_t size)
{
    const uint64_t next = address - HEADER_BYTES + size + WORD;
    return sj_page_start(next) != sj_page_start(address) ||
           (*(const uint64_t *)(uintptr_t)next & FLAG_BEFORE_IN_USE) != 0;
}

bool sj_free_check_may_be_block(uint64_t address)
{
    if (!is_checking || address == 0) {
        return true;
    }
    if (address % ALIGNMENT != 0) {
        return false;
    }
    const uint64_t *header = (const uint64_t *)(uintptr_t)(address - HEADER_BYTES);
    const uint64_t size = header[1] & ~(uint64_t)FLAGS;
    if ((header[1] & FLAG_MAPPED) != 0) { /* The first word is the offset in the mapping. */
        return ((address - HEADER_BYTES - header[0]) | (size + header[0])) % sj_page_bytes() == 0;
    }
    return size >= LEAST_CHUNK_BYTES && size % ALIGNMENT == 0 && size >> MOST_SIZE_BITS == 0 &&
           is_in_use(address, size);
}

void sj_free_check_report(uint64_t address, uint64_t site)
{
    sj_zombie_trace here = {0};
    sj_trace_here(&here);
    sj_report_stop_if(sj_report_use(NULL, SJ_ZOMBIE_INVALID_FREE, address, true, &here, site));
}
