/* Design notes.
 *
 * A block is decoded and replayed by the collector's code, so a profile equals the sums that the
 * collector would make of the blocks. Each report starts with an empty graph: a block has the calls
 * that were open before it, so sums of ended calls can be added anywhere. DEEP_FRAMES blocks, which
 * later blocks of deep stacks refer to, are kept while they may be needed. */
#include "agent/modes/profile.h"

#include "agent/host/clock.h"
#include "agent/modes/open_stacks.h"
#include "proto/base/array.h"
#include "proto/base/crc32c.h"
#include "proto/callgraph/block_check.h"
#include "proto/callgraph/profile.h"
#include "proto/callgraph/stack_walk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

enum {
    /* The collector writes every caller, callee and function that a frame changes, so few large
     * frames cost it less than many small ones. */
    FEW_NODES = 16 * 1024,
    MOST_NODES = 128 * 1024, /* about 300 bytes of memory each */
    LARGE_BYTES = 12 << 20,  /* limit of estimated_bytes(); a frame takes less than half of it */
    ENCODED_NODE_BYTES = 64, /* a node with one call, at most */
    ENCODED_EVENT_BYTES = 2, /* half of the events may add a bin of three bytes */
    STACKS_MAX_BYTES = 32 << 20,
    COMPRESSION_LEVEL = 3
};

typedef struct kept_stack {
    struct kept_stack *older;
    uint32_t stream;
    uint64_t number;
    size_t size;
    uint8_t bytes[];
} kept_stack;

struct sj_profiler {
    sj_profiler_options options;
    sj_callgraph *graph;
    sj_block_decoder *decoder;
    sj_block_decoder *stack_decoder;
    kept_stack *stacks; /* newest first */
    size_t stacks_bytes;
    bool is_unusable; /* the graph: its sums are lost */
    sj_profile_sums sums;
    sj_profile_open_call *open_calls; /* calls in the sums that ended as open */
    size_t open_count, open_capacity;
    sj_open_stacks open_stacks; /* open calls of streams that continue */
    const sj_gap *gaps;         /* gaps of the last block; borrowed from `decoder` */
    size_t gap_count;
    uint64_t checkpoint_events; /* number of summed events at the last checkpoint */
    uint64_t next_checkpoint_ns;
};

static bool name_checkpoint(const char *directory, const char *suffix, char path[PATH_MAX])
{
    const int written = snprintf(path, PATH_MAX, "%s/profile-sums%s", directory, suffix);
    return written > 0 && written < PATH_MAX;
}

/* Deletes the last checkpoint: another mode may have sent calls since, so it is not valid. */
static void begin_sums(const sj_profiler_options *options)
{
    char path[PATH_MAX];
    sj_frame_writer_counters sent;
    if (options->journal == NULL) {
        return;
    }
    sj_frame_writer_get_counters(options->writer, &sent);
    if (name_checkpoint(options->runtime_directory, "", path)) {
        unlink(path);
    }
    atomic_store(&options->journal->data->summed_calls, sent.block_calls);
    atomic_store(&options->journal->data->summed_events, sent.block_events);
}

sj_status sj_profiler_new(const sj_profiler_options *options, sj_profiler **profiler)
{
    sj_profiler *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    begin_sums(options);
    if (options->journal != NULL) {
        made->checkpoint_events = atomic_load(&options->journal->data->summed_events);
    }
    if (sj_callgraph_new(&made->graph) != SJ_OK || sj_block_decoder_new(&made->decoder) != SJ_OK ||
        sj_block_decoder_new(&made->stack_decoder) != SJ_OK) {
        sj_profiler_free(made);
        return SJ_ENOMEM;
    }
    sj_callgraph_list_open(made->graph);
    *profiler = made;
    return SJ_OK;
}

void sj_profiler_free(sj_profiler *profiler)
{
    if (profiler == NULL) {
        return;
    }
    while (profiler->stacks != NULL) {
        kept_stack *gone = profiler->stacks;
        profiler->stacks = gone->older;
        free(gone);
    }
    free(profiler->open_calls);
    sj_open_stacks_deinit(&profiler->open_stacks);
    sj_callgraph_free(profiler->graph);
    sj_block_decoder_free(profiler->decoder);
    sj_block_decoder_free(profiler->stack_decoder);
    free(profiler);
}

static sj_status keep_stack(sj_profiler *profiler, const sj_block_header *header, sj_slice bytes)
{
    if (profiler->stacks_bytes + bytes.size > STACKS_MAX_BYTES) {
        return SJ_EFULL;
    }
    kept_stack *kept = malloc(sizeof(*kept) + bytes.size);
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    *kept = (kept_stack){.older = profiler->stacks,
                         .stream = header->stream,
                         .number = header->first_event,
                         .size = bytes.size};
    memcpy(kept->bytes, bytes.data, bytes.size);
    profiler->stacks = kept;
    profiler->stacks_bytes += bytes.size;
    return SJ_OK;
}

/* Deletes the stacks of a stream that ended. */
static void forget_stacks(sj_profiler *profiler, uint32_t stream)
{
    kept_stack **at = &profiler->stacks;
    while (*at != NULL) {
        kept_stack *kept = *at;
        if (kept->stream == stream) {
            *at = kept->older;
            profiler->stacks_bytes -= kept->size;
            free(kept);
        } else {
            at = &kept->older;
        }
    }
}

static const kept_stack *find_stack(const sj_profiler *profiler, uint32_t stream, uint64_t number)
{
    const kept_stack *kept = profiler->stacks;
    while (kept != NULL && (kept->stream != stream || kept->number != number)) {
        kept = kept->older;
    }
    return kept;
}

static sj_status find_deep_frames(void *context, uint32_t stream, uint32_t reference,
                                  uint32_t count, sj_stack_frame *frames)
{
    sj_profiler *profiler = context;
    uint32_t wanted = count;
    while (wanted > 0) {
        sj_block block;
        const kept_stack *kept = find_stack(profiler, stream, reference);
        if (kept == NULL) {
            return SJ_ENOTFOUND;
        }
        const sj_slice bytes = {.data = kept->bytes, .size = kept->size};
        SJ_TRY(sj_block_decode(profiler->stack_decoder, bytes, 0, &block));
        const uint32_t first = block.header.stack_frames;
        if (first >= wanted || block.frame_count < wanted - first) {
            return SJ_ECORRUPT;
        }
        memcpy(frames + first, block.frames, (wanted - first) * sizeof(*frames));
        wanted = first;
        reference = block.header.stack_reference;
    }
    return SJ_OK;
}

static void add_sums(sj_profile_sums *sums, const sj_block_header *header)
{
    if (sums->events == 0 || header->first_ticks < sums->first_ticks) {
        sums->first_ticks = header->first_ticks;
    }
    sums->last_ticks =
        header->last_ticks > sums->last_ticks ? header->last_ticks : sums->last_ticks;
    sums->calls += header->call_count;
    sums->events += header->event_count;
}

typedef struct stream_open_calls {
    sj_profiler *profiler;
    uint32_t stream;
} stream_open_calls;

static sj_status keep_open_call(void *context, const sj_stack_frame *frame, uint32_t depth)
{
    const stream_open_calls *of = context;
    sj_profiler *profiler = of->profiler;
    SJ_TRY(sj_array_reserve(&profiler->open_calls, &profiler->open_capacity, profiler->open_count,
                            1, sizeof(*profiler->open_calls)));
    profiler->open_calls[profiler->open_count++] =
        (sj_profile_open_call){.stream = of->stream,
                               .depth = depth,
                               .function = frame->function,
                               .flags = frame->flags,
                               .call_index = frame->call_index,
                               .start_ticks = frame->start_ticks};
    return SJ_OK;
}

/* Lists the calls that the block ends as open, because the sums contain no separate calls. */
static sj_status keep_open_calls(sj_profiler *profiler, const sj_block *block)
{
    const sj_block_header *header = &block->header;
    sj_block_extent extent;
    stream_open_calls of = {.profiler = profiler, .stream = header->stream};
    sj_stack_walk walk = {.open_call = keep_open_call, .context = &of};
    if (block->ending_count == 0 ||
        block->endings[block->ending_count - 1].ending != SJ_ENDING_OPEN) {
        return SJ_OK;
    }
    SJ_TRY(sj_block_check(block, &extent));
    sj_stack_frame *deep = calloc((size_t)header->stack_frames + 1, sizeof(*deep));
    sj_status status = deep != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK && header->stack_frames != 0) {
        status = find_deep_frames(profiler, header->stream, header->stack_reference,
                                  header->stack_frames, deep);
    }
    if (status == SJ_OK) {
        status = sj_stack_walk_begin(&walk, block, deep);
    }
    if (status == SJ_OK) {
        status = sj_stack_walk_run(&walk, block);
    }
    sj_stack_walk_deinit(&walk);
    free(deep);
    return status;
}

/* Starts new sums with the graph `next`. */
static void start_sums(sj_profiler *profiler, sj_callgraph *next)
{
    profiler->sums = (sj_profile_sums){0};
    profiler->open_count = 0;
    sj_callgraph_free(profiler->graph);
    profiler->graph = next;
    sj_callgraph_list_open(next);
    profiler->is_unusable = false;
}

/* Reports the sums of an unusable graph as lost, and starts new ones. */
static sj_status replace_graph(sj_profiler *profiler)
{
    sj_callgraph *next = NULL;
    const sj_profile_sums *lost = &profiler->sums;
    SJ_TRY(sj_callgraph_new(&next));
    const sj_status status =
        lost->events == 0
            ? SJ_OK
            : sj_frame_writer_gap(profiler->options.writer, SJ_GAP_SPOOL_FULL, 0, 0, lost->calls,
                                  lost->events, lost->first_ticks, lost->last_ticks);
    if (status != SJ_OK) {
        sj_callgraph_free(next);
        return status;
    }
    if (profiler->options.journal != NULL) {
        sj_journal_data *journal = profiler->options.journal->data;
        atomic_fetch_sub(&journal->summed_calls, lost->calls);
        atomic_fetch_sub(&journal->summed_events, lost->events);
    }
    start_sums(profiler, next);
    return SJ_OK;
}

/* Adds a decoded block to the sums. A refused block is offered again in part: the steps besides the
 * graph fail before it, and nothing fails after the graph has the block. If the graph runs out of
 * memory, it may hold half of the block. All its sums are then lost, including the sums of earlier
 * blocks. */
static sj_status apply(sj_profiler *profiler, const sj_block *block)
{
    sj_block_summary summary;
    const size_t open_before = profiler->open_count;
    sj_status status = keep_open_calls(profiler, block);
    if (status == SJ_OK) {
        status = sj_open_stacks_reserve(&profiler->open_stacks, &block->header);
    }
    if (status == SJ_OK) {
        status = sj_callgraph_apply(profiler->graph, block, find_deep_frames, profiler, &summary);
        profiler->is_unusable = status == SJ_ENOMEM || status == SJ_ELIMIT;
    }
    if (status != SJ_OK) {
        profiler->open_count = open_before;
        return status;
    }
    sj_open_stacks_note(&profiler->open_stacks, &block->header, &summary);
    return SJ_OK;
}

/* Adds a block's numbers to the sums, and to the journal. The events come last, because their
 * number says whether the sums hold the block (sj_slot_offer). */
static void count_block(sj_profiler *profiler, const sj_block_header *header)
{
    add_sums(&profiler->sums, header);
    if (profiler->options.journal != NULL) {
        sj_journal_data *journal = profiler->options.journal->data;
        atomic_fetch_add(&journal->summed_calls, header->call_count);
        atomic_fetch_add(&journal->summed_events, header->event_count);
    }
}

sj_status sj_profiler_block(sj_profiler *profiler, sj_slice bytes)
{
    sj_block block;
    sj_block_header header;
    profiler->gap_count = 0;
    SJ_TRY(sj_block_read_header(bytes, &header));
    if (header.kind == SJ_BLOCK_DEEP_FRAMES) {
        return keep_stack(profiler, &header, bytes);
    }
    SJ_TRY(profiler->is_unusable ? replace_graph(profiler) : SJ_OK);
    SJ_TRY(sj_block_decode(profiler->decoder, bytes, SJ_WANT_ALL, &block));
    SJ_TRY(apply(profiler, &block));
    count_block(profiler, &header);
    if ((header.flags & SJ_BLOCK_LAST) != 0) {
        forget_stacks(profiler, header.stream);
    }
    profiler->gaps = block.gaps;
    profiler->gap_count = block.gap_count;
    return SJ_OK;
}

const sj_gap *sj_profiler_gaps(const sj_profiler *profiler, size_t *count)
{
    *count = profiler->gap_count;
    return profiler->gaps;
}

/* Returns the most bytes that the sums can take before compression. */
static uint64_t estimated_bytes(const sj_profiler *profiler, uint64_t nodes)
{
    return nodes * ENCODED_NODE_BYTES + profiler->sums.events * ENCODED_EVENT_BYTES;
}

bool sj_profiler_is_large(const sj_profiler *profiler)
{
    const uint32_t nodes = sj_callgraph_node_count(profiler->graph);
    return profiler->open_count >= FEW_NODES || nodes >= MOST_NODES ||
           (nodes >= FEW_NODES && estimated_bytes(profiler, nodes) >= LARGE_BYTES);
}

static sj_status compress(const uint8_t *raw, size_t size, uint8_t **packed, size_t *packed_size)
{
    const size_t bound = ZSTD_compressBound(size);
    *packed = malloc(bound);
    if (*packed == NULL) {
        return SJ_ENOMEM;
    }
    *packed_size = ZSTD_compress(*packed, bound, raw, size, COMPRESSION_LEVEL);
    if (ZSTD_isError(*packed_size)) {
        free(*packed);
        return SJ_ENOMEM;
    }
    return SJ_OK;
}

/* Packs the sums for sending; the caller frees `*packed`. */
static sj_status pack(sj_profiler *profiler, uint8_t **packed, size_t *packed_size)
{
    uint8_t *raw = NULL;
    size_t size = 0;
    SJ_TRY(sj_callgraph_settle(profiler->graph));
    SJ_TRY(sj_profile_encode(profiler->graph, profiler->open_calls, profiler->open_count, &raw,
                             &size));
    profiler->sums.raw_bytes = (uint32_t)size;
    const sj_status status = compress(raw, size, packed, packed_size);
    free(raw);
    return status;
}

/* Creates the graph of the next sums, then sends the packed sums. */
static sj_status send_sums(sj_profiler *profiler, sj_slice payload, sj_callgraph **next)
{
    SJ_TRY(sj_callgraph_new(next));
    return sj_frame_writer_profile(profiler->options.writer, &profiler->sums, payload);
}

sj_status sj_profiler_send(sj_profiler *profiler)
{
    uint8_t *packed = NULL;
    sj_callgraph *next = NULL;
    sj_slice payload = {0};
    if (profiler->is_unusable) {
        return replace_graph(profiler);
    }
    if (profiler->sums.events == 0) {
        return SJ_OK;
    }
    SJ_TRY(pack(profiler, &packed, &payload.size));
    payload.data = packed;
    const sj_status status = send_sums(profiler, payload, &next);
    free(packed);
    if (status != SJ_OK) {
        sj_callgraph_free(next);
        return status;
    }
    start_sums(profiler, next);
    return SJ_OK;
}

sj_profile_sums sj_profiler_unsent(const sj_profiler *profiler)
{
    return profiler->sums;
}

/* Header of a checkpoint, followed by the packed sums and the open stacks. The byte order and
 * layout are the machine's. */
typedef struct checkpoint_header {
    uint64_t magic;
    uint64_t events_before; /* number of events sent before these sums */
    sj_profile_sums sums;
    uint64_t payload_bytes;
    uint64_t stack_bytes;
    uint32_t crc; /* CRC-32C over the sums and the stacks */
    uint32_t reserved;
} checkpoint_header;

enum {
    CHECKPOINT_NS = 1000000000, /* least pause between checkpoints */
    /* The pause is also at least this many times as long as the last checkpoint took: the program
     * may wait for the drain while the drain writes a checkpoint. */
    CHECKPOINT_PAUSE = 31
};

#define CHECKPOINT_MAGIC UINT64_C(0x335453434a53) /* "SJCST3" */

static bool write_checkpoint(const char *path, const checkpoint_header *header, sj_slice payload,
                             sj_slice stacks)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    const struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)header, .iov_len = sizeof(*header)},
        {.iov_base = (void *)(uintptr_t)payload.data, .iov_len = payload.size},
        {.iov_base = (void *)(uintptr_t)stacks.data, .iov_len = stacks.size}};
    const bool is_written =
        fd >= 0 && writev(fd, parts, 3) == (ssize_t)(sizeof(*header) + payload.size + stacks.size);
    if (fd >= 0) {
        close(fd);
    }
    return is_written;
}

/* Replaces the last checkpoint. */
static bool keep_checkpoint(const sj_profiler *profiler, uint64_t events, sj_slice payload,
                            sj_slice stacks)
{
    char fresh[PATH_MAX];
    char path[PATH_MAX];
    const char *directory = profiler->options.runtime_directory;
    const checkpoint_header header = {
        .magic = CHECKPOINT_MAGIC,
        .events_before = events - profiler->sums.events,
        .sums = profiler->sums,
        .payload_bytes = payload.size,
        .stack_bytes = stacks.size,
        .crc = sj_crc32c(sj_crc32c(0, payload.data, payload.size), stacks.data, stacks.size)};
    return name_checkpoint(directory, ".new", fresh) && name_checkpoint(directory, "", path) &&
           write_checkpoint(fresh, &header, payload, stacks) && rename(fresh, path) == 0;
}

void sj_profiler_checkpoint(sj_profiler *profiler)
{
    sj_slice payload = {0};
    sj_slice stacks = {0};
    uint8_t *packed = NULL;
    uint8_t *open = NULL;
    if (profiler->options.journal == NULL) {
        return;
    }
    const uint64_t events = atomic_load(&profiler->options.journal->data->summed_events);
    if (events == profiler->checkpoint_events || profiler->is_unusable ||
        pack(profiler, &packed, &payload.size) != SJ_OK) {
        return;
    }
    if (sj_open_stacks_write(&profiler->open_stacks, &open, &stacks.size) == SJ_OK) {
        payload.data = packed;
        stacks.data = open;
        if (keep_checkpoint(profiler, events, payload, stacks)) {
            profiler->checkpoint_events = events;
        }
    }
    free(open);
    free(packed);
}

void sj_profiler_checkpoint_if_due(sj_profiler *profiler, uint64_t now_ns)
{
    if (now_ns < profiler->next_checkpoint_ns) {
        return;
    }
    sj_profiler_checkpoint(profiler);
    const uint64_t end_ns = sj_clock_ns(CLOCK_MONOTONIC);
    const uint64_t pause_ns = (end_ns - now_ns) * CHECKPOINT_PAUSE;
    profiler->next_checkpoint_ns = end_ns + (pause_ns > CHECKPOINT_NS ? pause_ns : CHECKPOINT_NS);
}

/* Reads a complete checkpoint: `*bytes` holds its sums and stacks, and the caller frees it. Returns
 * SJ_ENOTFOUND or SJ_ENOMEM. */
static sj_status read_checkpoint(const char *directory, checkpoint_header *header, uint8_t **bytes)
{
    char path[PATH_MAX];
    const int fd =
        name_checkpoint(directory, "", path) ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    sj_status status = SJ_ENOTFOUND;
    size_t size = 0;
    if (fd < 0) {
        return status;
    }
    if (read(fd, header, sizeof(*header)) == (ssize_t)sizeof(*header) &&
        header->magic == CHECKPOINT_MAGIC && header->payload_bytes <= SJ_FRAME_MAX_BYTES &&
        header->stack_bytes <= SJ_OPEN_STACKS_MAX_BYTES) {
        size = (size_t)(header->payload_bytes + header->stack_bytes);
        *bytes = malloc(size + 1);
        status = *bytes != NULL ? SJ_OK : SJ_ENOMEM;
    }
    if (status == SJ_OK &&
        (read(fd, *bytes, size) != (ssize_t)size || sj_crc32c(0, *bytes, size) != header->crc)) {
        free(*bytes);
        *bytes = NULL;
        status = SJ_ENOTFOUND;
    }
    close(fd);
    return status;
}

/* Sends the sums if they were not sent. Compares numbers of events, because sums of exits alone
 * have no calls. Sends the open stacks only if these sums were the last ones sent. */
static sj_status send_checkpoint(const checkpoint_header *header, const uint8_t *bytes,
                                 sj_frame_writer *writer)
{
    const sj_slice payload = {.data = bytes, .size = (size_t)header->payload_bytes};
    const sj_slice stacks = {.data = bytes + payload.size, .size = (size_t)header->stack_bytes};
    sj_frame_writer_counters sent;
    sj_frame_writer_get_counters(writer, &sent);
    if (header->events_before == sent.block_events && header->sums.events != 0) {
        SJ_TRY(sj_frame_writer_profile(writer, &header->sums, payload));
        sj_frame_writer_get_counters(writer, &sent);
    }
    return header->events_before + header->sums.events == sent.block_events
               ? sj_open_stacks_send(stacks, writer)
               : SJ_OK;
}

/* True if a recovery that was killed has reported the sums that were not sent. */
static bool is_reported(const sj_profiler_options *options)
{
    const uint32_t gap = options->journal->data->sums_gap;
    return gap != 0 && gap <= sj_frame_writer_resumed_gaps(options->writer);
}

sj_status sj_profiler_recover(const sj_profiler_options *options)
{
    checkpoint_header header;
    uint8_t *bytes = NULL;
    sj_frame_writer_counters sent;
    sj_journal_data *journal = options->journal->data;
    const sj_status found = read_checkpoint(options->runtime_directory, &header, &bytes);
    sj_status status = found == SJ_OK ? send_checkpoint(&header, bytes, options->writer) : found;
    free(bytes);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        return status;
    }
    sj_frame_writer_get_counters(options->writer, &sent);
    const uint64_t calls = atomic_load(&journal->summed_calls);
    const uint64_t events = atomic_load(&journal->summed_events);
    if ((calls <= sent.block_calls && events <= sent.block_events) || is_reported(options)) {
        return SJ_OK;
    }
    journal->sums_gap = (uint32_t)sj_frame_writer_next_gap(options->writer);
    return sj_frame_writer_gap(options->writer, SJ_GAP_TORN, 0, 0,
                               calls > sent.block_calls ? calls - sent.block_calls : 0,
                               events > sent.block_events ? events - sent.block_events : 0,
                               found == SJ_OK ? header.sums.last_ticks : 0, sj_clock_ticks());
}
