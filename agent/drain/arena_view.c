#include "agent/drain/arena_view.h"

#include "agent/abi/page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* If a thread's slot has at most this much data, it is zeroed for the next thread. Otherwise its
 * pages are returned to the system. */
static uint64_t zeroed_bytes(void)
{
    return SJ_CHUNK_BYTES + sj_page_bytes();
}

static sj_status read_geometry(int fd, sj_arena_view *view)
{
    sj_arena_header header;
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return SJ_EIO;
    }
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) || header.magic == 0) {
        return SJ_EAGAIN;
    }
    if (header.magic != SJ_ARENA_MAGIC) {
        return SJ_ECORRUPT;
    }
    if (header.version < SJ_ARENA_FIRST_VERSION || header.version > SJ_ARENA_VERSION) {
        return SJ_EVERSION;
    }
    if (header.max_threads == 0 || header.max_threads > SJ_ARENA_MAX_THREADS ||
        header.chunks_per_thread == 0 || header.chunks_per_thread > SJ_ARENA_MAX_CHUNKS) {
        return SJ_ECORRUPT;
    }
    view->max_threads = header.max_threads;
    view->counts_slots = header.version > SJ_ARENA_FIRST_VERSION;
    view->chunks_per_thread = header.chunks_per_thread;
    view->has_counted = header.version >= SJ_ARENA_COUNTING_VERSION;
    view->has_distances = header.version == SJ_ARENA_DISTANCE_VERSION;
    view->bytes = view->has_counted
                      ? sj_arena_bytes(header.max_threads, header.chunks_per_thread)
                      : sj_arena_counted_offset(header.max_threads, header.chunks_per_thread);
    return (uint64_t)status.st_size >= view->bytes ? SJ_OK : SJ_ECORRUPT;
}

bool sj_arena_view_back(const sj_arena_view *view, uint64_t offset, uint64_t bytes)
{
    return fallocate(view->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) == 0 ||
           errno == EOPNOTSUPP || errno == ENOSYS;
}

uint32_t sj_arena_view_slots_begun(sj_arena_view *view)
{
    const uint32_t told = view->counts_slots ? atomic_load(&sj_arena_view_header(view)->slots_begun)
                                             : view->max_threads;
    const uint32_t begun = told < view->max_threads ? told : view->max_threads;
    if (begun > view->slots_backed &&
        sj_arena_view_back(view, SJ_ARENA_HEADER_BYTES, begun * sizeof(sj_thread_slot))) {
        view->slots_backed = begun;
    }
    return begun < view->slots_backed ? begun : view->slots_backed;
}

const sj_arena_mark *sj_arena_view_mark(const sj_arena_view *view, uint32_t mark)
{
    static const sj_arena_mark none;
    const uint64_t offset =
        SJ_ARENA_MARKS_OFFSET + (uint64_t)(mark % SJ_ARENA_MARKS) * sizeof(sj_arena_mark);
    return sj_arena_view_back(view, offset, sizeof(sj_arena_mark))
               ? (const sj_arena_mark *)(const void *)(view->base + offset)
               : &none;
}

sj_status sj_arena_view_open(const char *path, sj_arena_view *view)
{
    *view = (sj_arena_view){.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    if (view->fd < 0) {
        return SJ_EAGAIN;
    }
    sj_status status = read_geometry(view->fd, view);
    if (status == SJ_OK) {
        void *base = mmap(NULL, view->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, view->fd, 0);
        view->base = base != MAP_FAILED ? base : NULL;
        status = base != MAP_FAILED ? SJ_OK : errno == ENODEV ? SJ_EIO : SJ_ENOMEM;
    }
    if (status != SJ_OK) {
        close(view->fd);
        view->fd = -1;
    }
    return status;
}

void sj_arena_view_close(sj_arena_view *view)
{
    if (view->base != NULL) {
        munmap(view->base, view->bytes);
        close(view->fd);
    }
    *view = (sj_arena_view){.fd = -1};
}

void sj_arena_view_wake(const sj_arena_view *view)
{
    _Atomic uint32_t *waiters = &sj_arena_view_header(view)->drain_waiters;
    /* The fence orders this after the release of the chunk. So a thread that registers as a waiter
     * later sees the free chunk. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(waiters, memory_order_relaxed) != 0) {
        syscall(SYS_futex, waiters, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

void sj_arena_view_release(const sj_arena_view *view, uint32_t slot, uint32_t chunk)
{
    sj_chunk_header *header = sj_arena_view_chunk(view, slot, chunk);
    atomic_store_explicit(&header->sequence, 0, memory_order_relaxed);
    memset(sj_arena_chunk_records(header), 0, SJ_CHUNK_BYTES - SJ_CHUNK_HEADER_BYTES);
    /* Pairs with the producer's acquire load before it claims a chunk. */
    atomic_fetch_or_explicit(&sj_arena_view_slot(view, slot)->free_chunks, UINT64_C(1) << chunk,
                             memory_order_release);
    sj_arena_view_wake(view);
}

/* Returns the offset of the next data or hole in the file; -1 if there are none. A file system that
 * does not know its holes has data everywhere. */
static off_t find(const sj_arena_view *view, uint64_t from, int what)
{
    const off_t found = lseek(view->fd, (off_t)from, what);
    return found >= 0 || errno == ENXIO ? found : (off_t)(what == SEEK_DATA ? from : view->bytes);
}

uint64_t sj_arena_view_data_end(const sj_arena_view *view, uint64_t start, uint64_t end)
{
    uint64_t data_end = start;
    off_t data = find(view, start, SEEK_DATA);
    while (data >= 0 && (uint64_t)data < end) {
        const off_t hole = find(view, (uint64_t)data, SEEK_HOLE);
        if (hole <= data || (uint64_t)hole >= end) {
            return end;
        }
        data_end = (uint64_t)hole;
        data = find(view, data_end, SEEK_DATA);
    }
    return data_end;
}

uint8_t *sj_arena_view_counted(const sj_arena_view *view)
{
    const uint64_t offset = sj_arena_counted_offset(view->max_threads, view->chunks_per_thread);
    return view->has_counted && sj_arena_view_back(view, offset, SJ_CHUNK_BYTES)
               ? view->base + offset
               : NULL;
}

/* Counts the short records of a place. The last place of a thread may be partly filled. */
static void count_shorts(const sj_record *place, uint64_t *calls, uint64_t *events)
{
    for (uint32_t i = 0; i < SJ_SHORTS; i++) {
        const uint32_t word = sj_record_word(place, i);
        const bool is_one = sj_word_is_short(word) && sj_short_function(word) != 0;
        *events += is_one;
        *calls += is_one && !sj_short_is_exit(word);
    }
}

void sj_arena_view_discarded(const sj_arena_view *view, uint32_t slot, uint64_t *calls,
                             uint64_t *events)
{
    const uint64_t window_start =
        sj_arena_discard_offset(view->max_threads, view->chunks_per_thread, slot);
    const sj_record *window = (const sj_record *)(const void *)(view->base + window_start);
    *calls = 0;
    *events = 0;
    if (sj_arena_view_data_end(view, window_start, window_start + 1) == window_start) {
        return;
    }
    for (size_t i = 0; i < SJ_DISCARD_RECORDS; i++) {
        const uint32_t tag = sj_arena_record_tag(&window[i]);
        if (tag == 0 || sj_word_is_short(tag)) {
            count_shorts(&window[i], calls, events);
            continue;
        }
        *events += 1;
        *calls += tag >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER;
    }
}

/* Counts the records of a chunk, starting at the place `from`. Returns the place after them. */
static uint32_t count_chunk(sj_chunk_header *header, uint32_t from, uint64_t *calls,
                            uint64_t *events)
{
    const uint32_t closed = atomic_load_explicit(&header->closed_records, memory_order_acquire);
    const uint32_t limit = closed < SJ_CHUNK_RECORDS ? closed : SJ_CHUNK_RECORDS;
    const sj_record *places = sj_arena_chunk_records(header);
    uint64_t holes = 0;
    uint32_t end = from;
    for (uint32_t i = from; i < limit; i++) {
        const uint32_t tag = sj_arena_record_tag(&places[i]);
        const uint32_t kind = tag >> SJ_RECORD_FUNCTION_BITS;
        const uint64_t before = *events;
        if (tag == 0 || sj_word_is_short(tag)) {
            count_shorts(&places[i], calls, events);
        } else {
            *events += kind < SJ_RECORD_NOTE;
            *calls += kind == SJ_RECORD_ENTER;
        }
        const bool is_hole = tag == 0 && *events == before;
        *events += is_hole ? 0 : holes;
        holes = is_hole ? holes + 1 : 0;
        end = is_hole ? end : i + 1;
    }
    if (closed == UINT32_MAX) { /* holes at the end of an open chunk are free places */
        return end;
    }
    *events += holes;
    return limit > from ? limit : from;
}

sj_unread_records sj_arena_view_unread(const sj_arena_view *view, uint32_t slot)
{
    const sj_thread_slot *thread = sj_arena_view_slot(view, slot);
    const uint64_t first = thread->cursor.sequence != 0 ? thread->cursor.sequence : 1;
    const uint64_t position =
        thread->cursor.position <= SJ_CHUNK_RECORDS ? thread->cursor.position : 0;
    sj_unread_records unread = {.sequence = first, .position = position};
    /* Pairs with the producer's claim of a chunk. */
    const uint64_t free = atomic_load_explicit(&thread->free_chunks, memory_order_acquire);
    for (uint32_t i = 0; i < view->chunks_per_thread; i++) {
        if ((free >> i & 1) != 0 ||
            !sj_arena_view_back(
                view, sj_arena_chunk_offset(view->max_threads, view->chunks_per_thread, slot, i),
                SJ_CHUNK_BYTES)) {
            continue;
        }
        sj_chunk_header *chunk = sj_arena_view_chunk(view, slot, i);
        /* Pairs with the producer's release when the chunk can be read. */
        const uint64_t sequence = atomic_load_explicit(&chunk->sequence, memory_order_acquire);
        if (sequence < first) {
            continue;
        }
        const uint32_t end = count_chunk(chunk, sequence == first ? (uint32_t)position : 0,
                                         &unread.calls, &unread.events);
        if (sequence >= unread.sequence) {
            unread.sequence = sequence;
            unread.position = end;
        }
    }
    return unread;
}

/* Zeroes the data of a part of the file, and leaves its holes. */
static void zero_data(const sj_arena_view *view, uint64_t first, uint64_t next)
{
    off_t data = find(view, first, SEEK_DATA);
    while (data >= 0 && (uint64_t)data < next) {
        const off_t hole = find(view, (uint64_t)data, SEEK_HOLE);
        const uint64_t end = hole > data && (uint64_t)hole < next ? (uint64_t)hole : next;
        memset(view->base + data, 0, end - (uint64_t)data);
        data = find(view, end, SEEK_DATA);
    }
}

/* True if a part of the file uses at most as much memory as is kept for the next thread. */
static bool holds_little(const sj_arena_view *view, uint64_t first, uint64_t next)
{
    uint64_t bytes = 0;
    off_t data = find(view, first, SEEK_DATA);
    while (data >= 0 && (uint64_t)data < next && bytes <= zeroed_bytes()) {
        const off_t hole = find(view, (uint64_t)data, SEEK_HOLE);
        const uint64_t end = hole > data && (uint64_t)hole < next ? (uint64_t)hole : next;
        bytes += end - (uint64_t)data;
        data = find(view, end, SEEK_DATA);
    }
    return bytes <= zeroed_bytes();
}

static void clear_slot(const sj_arena_view *view, uint32_t slot)
{
    const uint32_t chunks = view->chunks_per_thread;
    const uint64_t first = sj_arena_chunk_offset(view->max_threads, chunks, slot, 0);
    const uint64_t next = sj_arena_chunk_offset(view->max_threads, chunks, slot + 1, 0);
    const bool is_short = atomic_load(&sj_arena_view_header(view)->is_full) != 0;
    if ((is_short || !holds_little(view, first, next)) &&
        fallocate(view->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                  (off_t)(next - first)) == 0) {
        atomic_store(&sj_arena_view_slot(view, slot)->backed_chunks, 0);
    } else {
        zero_data(view, first, next);
    }
}

void sj_arena_view_recycle(const sj_arena_view *view, uint32_t slot)
{
    const uint32_t chunks = view->chunks_per_thread;
    sj_thread_slot *thread = sj_arena_view_slot(view, slot);
    atomic_store(&thread->state, SJ_THREAD_ENDED);
    clear_slot(view, slot);
    atomic_store(&thread->chunk_sequence, 0);
    atomic_store(&thread->dropped_calls, 0);
    atomic_store(&thread->dropped_events, 0);
    atomic_store(&thread->waited_ticks, 0);
    atomic_store(&thread->cpu_ns, 0);
    atomic_store(&thread->allocated_bytes, 0);
    for (size_t i = 0; i < SJ_SLOT_MEMORY; i++) {
        atomic_store(&thread->memory[i], 0);
    }
    thread->tid = 0;
    thread->cursor = (sj_slot_cursor){0};
    thread->unsent_calls = 0;
    thread->offer = (sj_slot_offer){0};
    atomic_store(&thread->free_chunks,
                 chunks == SJ_ARENA_MAX_CHUNKS ? UINT64_MAX : (UINT64_C(1) << chunks) - 1);
    /* Pairs with the acquire in which a new thread claims the slot. */
    atomic_store_explicit(&thread->state, SJ_THREAD_FREE, memory_order_release);
    /* Pairs with the acquire of a thread that found no slot before. */
    atomic_fetch_add_explicit(&sj_arena_view_header(view)->slots_recycled, 1, memory_order_release);
}
