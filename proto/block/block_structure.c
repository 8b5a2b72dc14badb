/* The structure of a block, as runs and misses.
 *
 * The structure is a sequence of symbols: 0 for LEAVE, 1 + dictionary index for ENTER. Programs
 * repeat themselves, so the sequence is stored as agreement with an earlier part of itself. After a
 * miss, the coder looks up where the same last SJ_HISTORY_LONG symbols were seen before, else the
 * last SJ_HISTORY_SHORT. If both are new, it continues where the previous match ended. It writes
 * how many symbols agree with what followed there (the run), then the first symbol that does not
 * agree (the miss). Encoder and decoder keep the same tables.
 *
 * Only positions up to SJ_HISTORY_LONG after a miss are entered in the tables: a context wholly
 * within a run was entered with its original. So the work is proportional to the misses (1-6 % of
 * events). Runs are compared and copied in bulk, and the decoder has no chain of dependent lookups.
 *
 * Contexts use the low 16 bits of a symbol, so that both symbol widths make the same bytes. The
 * hash functions and table sizes are part of the format. */
#include "proto/block/block_internal.h"

#define LONG_FACTOR_OLD UINT64_C(0x9e3779b97f4a7c15)
#define LONG_FACTOR_NEW UINT64_C(0xd6e8feb86659fd93)

enum { NOWHERE = -1 };

/* Symbols of either width. `wide` is a compile-time constant after inlining. */
typedef struct symbol_array {
    void *at;
    bool wide;
} symbol_array;

static inline __attribute__((always_inline)) uint32_t symbol_at(symbol_array symbols, int64_t i)
{
    return symbols.wide ? ((const uint32_t *)symbols.at)[i] : ((const uint16_t *)symbols.at)[i];
}

/* Returns the low 16 bits of the 4 symbols before position `i`, the newest in the highest bits. */
static inline __attribute__((always_inline)) uint64_t four_before(symbol_array symbols, int64_t i)
{
    uint64_t four = 0;
    if (!symbols.wide) {
        memcpy(&four, (const uint16_t *)symbols.at + i - 4, sizeof(four));
        return four;
    }
    for (int k = 4; k >= 1; k--) {
        four = four >> 16 | (uint64_t)(symbol_at(symbols, i - k) & 0xffff) << 48;
    }
    return four;
}

static inline __attribute__((always_inline)) uint32_t *
long_slot(sj_contexts *contexts, symbol_array symbols, int64_t i, uint64_t newest)
{
    const uint64_t older = four_before(symbols, i - 4) >> (64 - 16 * (SJ_HISTORY_LONG - 4));
    const uint64_t hash = (newest * LONG_FACTOR_NEW) ^ ((older * LONG_FACTOR_OLD) >> 17);
    return &contexts->long_slots[(hash * LONG_FACTOR_OLD) >> (64 - SJ_CONTEXT_LONG_BITS)];
}

static inline __attribute__((always_inline)) uint32_t *short_slot(sj_contexts *contexts,
                                                                  uint64_t newest)
{
    const uint64_t three = newest >> (64 - 16 * SJ_HISTORY_SHORT);
    return &contexts->short_slots[(three * LONG_FACTOR_NEW) >> (64 - SJ_CONTEXT_SHORT_BITS)];
}

void sj_contexts_begin(sj_contexts *contexts)
{
    /* Every epoch is above 0, so the slots of a new table look unused. */
    if (contexts->epoch == 0 || contexts->epoch > UINT32_MAX - 2 * SJ_BLOCK_MAX_EVENTS) {
        memset(contexts, 0, sizeof(*contexts));
    }
    contexts->epoch += SJ_BLOCK_MAX_EVENTS + 1;
}

/* Returns the position whose continuation predicts the symbols from `i` on. */
static inline __attribute__((always_inline)) int64_t
find_match(sj_contexts *contexts, symbol_array symbols, int64_t i, int64_t fallback)
{
    const uint64_t newest = four_before(symbols, i);
    const uint32_t in_long = *long_slot(contexts, symbols, i, newest);
    if (in_long >= contexts->epoch) {
        return in_long - contexts->epoch;
    }
    const uint32_t in_short = *short_slot(contexts, newest);
    return in_short >= contexts->epoch ? (int64_t)in_short - contexts->epoch : fallback;
}

/* Stores in the tables the positions `first`..`last` whose contexts contain the miss before
 * `first`. */
static inline __attribute__((always_inline)) void learn(sj_contexts *contexts, symbol_array symbols,
                                                        int64_t first, int64_t last)
{
    const uint32_t epoch = contexts->epoch;
    const int64_t last_long = last < first + SJ_HISTORY_LONG ? last : first + SJ_HISTORY_LONG;
    const int64_t last_short = last < first + SJ_HISTORY_SHORT ? last : first + SJ_HISTORY_SHORT;
    int64_t i = first;
    for (; i <= last_short; i++) {
        const uint64_t newest = four_before(symbols, i);
        *long_slot(contexts, symbols, i, newest) = epoch + (uint32_t)i;
        *short_slot(contexts, newest) = epoch + (uint32_t)i;
    }
    for (; i <= last_long; i++) {
        *long_slot(contexts, symbols, i, four_before(symbols, i)) = epoch + (uint32_t)i;
    }
}

/* Returns how many symbols from `match` on equal those from `i` on, at most `limit`. */
static inline __attribute__((always_inline)) int64_t
matching_length(symbol_array symbols, int64_t match, int64_t i, int64_t limit)
{
    const size_t width = symbols.wide ? 4 : 2;
    const int64_t step = (int64_t)(8 / width);
    const uint8_t *bytes = symbols.at;
    for (int64_t length = 0; length < limit; length += step) {
        uint64_t left;
        uint64_t right;
        memcpy(&left, bytes + (size_t)(match + length) * width, sizeof(left));
        memcpy(&right, bytes + (size_t)(i + length) * width, sizeof(right));
        if (left != right) {
            const int64_t same = __builtin_ctzll(left ^ right) / (int)(8 * width);
            return length + same < limit ? length + same : limit;
        }
    }
    return limit;
}

static inline __attribute__((always_inline)) void encode_symbols(sj_contexts *contexts,
                                                                 symbol_array symbols,
                                                                 int64_t count, sj_writer *runs,
                                                                 sj_writer *misses)
{
    sj_contexts_begin(contexts);
    int64_t match = NOWHERE;
    for (int64_t i = 0; i < count;) {
        match = find_match(contexts, symbols, i, match);
        const int64_t run = match == NOWHERE ? 0 : matching_length(symbols, match, i, count - i);
        const int64_t miss = i + run;
        sj_write_varint(runs, (uint64_t)run);
        if (miss == count) {
            return;
        }
        learn(contexts, symbols, i, miss);
        sj_write_varint(misses, symbol_at(symbols, miss));
        match = match == NOWHERE ? NOWHERE : match + run + 1;
        i = miss + 1;
    }
}

void sj_structure_encode(sj_contexts *contexts, const uint16_t *symbols, size_t count,
                         sj_writer *runs, sj_writer *misses)
{
    encode_symbols(contexts, (symbol_array){.at = (void *)(uintptr_t)symbols, .wide = false},
                   (int64_t)count, runs, misses);
}

void sj_structure_encode_wide(sj_contexts *contexts, const uint32_t *symbols, size_t count,
                              sj_writer *runs, sj_writer *misses)
{
    encode_symbols(contexts, (symbol_array){.at = (void *)(uintptr_t)symbols, .wide = true},
                   (int64_t)count, runs, misses);
}

/* Copies `run` symbols from position `match` to position `i`. The ranges may overlap: each round
 * copies at most the distance between them, which doubles with every round. Writes up to
 * SJ_COPY_SLACK symbols beyond the end; later symbols overwrite them. */
static inline __attribute__((always_inline)) void copy_run(symbol_array symbols, int64_t match,
                                                           int64_t i, int64_t run)
{
    enum { CHUNK_BYTES = 32 };
    const int64_t width = symbols.wide ? 4 : 2;
    uint8_t *from = (uint8_t *)symbols.at + match * width;
    uint8_t *to = (uint8_t *)symbols.at + i * width;
    for (int64_t left = run * width; left > 0;) {
        const int64_t apart = to - from;
        const int64_t bytes = left < apart ? left : apart;
        for (int64_t done = 0; done < bytes; done += CHUNK_BYTES) {
            uint8_t chunk[CHUNK_BYTES];
            memcpy(chunk, from + done, CHUNK_BYTES);
            memcpy(to + done, chunk, CHUNK_BYTES);
        }
        to += bytes;
        left -= bytes;
    }
}

static inline __attribute__((always_inline)) sj_status
decode_symbols(sj_contexts *contexts, sj_slice run_bytes, sj_slice miss_bytes,
               size_t function_count, symbol_array symbols, int64_t count)
{
    sj_reader runs = sj_reader_of(run_bytes.data, run_bytes.size);
    sj_reader misses = sj_reader_of(miss_bytes.data, miss_bytes.size);
    uint64_t functions_seen = 0;
    int64_t match = NOWHERE;
    sj_contexts_begin(contexts);
    for (int64_t i = 0; i < count;) {
        match = find_match(contexts, symbols, i, match);
        const uint64_t run = sj_read_varint(&runs);
        if (runs.bad || run > (uint64_t)(count - i) || (match == NOWHERE && run != 0)) {
            return SJ_ECORRUPT;
        }
        copy_run(symbols, match, i, (int64_t)run);
        const int64_t miss = i + (int64_t)run;
        if (miss == count) {
            break;
        }
        learn(contexts, symbols, i, miss);
        const uint64_t symbol = sj_read_varint(&misses);
        if (misses.bad || symbol > functions_seen + 1 || symbol > function_count) {
            return SJ_ECORRUPT;
        }
        functions_seen = symbol > functions_seen ? symbol : functions_seen;
        if (symbols.wide) {
            ((uint32_t *)symbols.at)[miss] = (uint32_t)symbol;
        } else {
            ((uint16_t *)symbols.at)[miss] = (uint16_t)symbol;
        }
        match = match == NOWHERE ? NOWHERE : match + (int64_t)run + 1;
        i = miss + 1;
    }
    const bool all_used = functions_seen == function_count && sj_reader_left(&runs) == 0 &&
                          sj_reader_left(&misses) == 0;
    return all_used ? SJ_OK : SJ_ECORRUPT;
}

sj_status sj_structure_decode(sj_contexts *contexts, sj_slice runs, sj_slice misses,
                              size_t function_count, uint16_t *symbols, size_t count)
{
    return decode_symbols(contexts, runs, misses, function_count,
                          (symbol_array){.at = symbols, .wide = false}, (int64_t)count);
}

sj_status sj_structure_decode_wide(sj_contexts *contexts, sj_slice runs, sj_slice misses,
                                   size_t function_count, uint32_t *symbols, size_t count)
{
    return decode_symbols(contexts, runs, misses, function_count,
                          (symbol_array){.at = symbols, .wide = true}, (int64_t)count);
}
