/* Measures speed and size of the way from a spool to the store: uplink, NNG, ingest, COMMIT.
 *
 *   ingest_bench [blocks] [events per block] [url] [random|DATABASE]
 *
 * Calls repeat as in real programs, with some noise. With `random` each call is chosen at random.
 * With a database of `sojourn record`, the blocks are those of its busiest stream, at most [blocks]
 * of them and with their recorded size. The bench first makes and spools all blocks; the clock runs
 * only while they are sent. The store defers aggregates, as in a collector. The second figure of
 * the writer includes the aggregates that are left at the end. */
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/uplink.h"
#include "collector-server/ingest/ingest.h"
#include "collector-server/store/store.h"
#include "tests/bench/recorded_blocks.h"
#include "tests/collector-server/store/frame_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void must(sj_status status, const char *what, const sj_error *error)
{
    if (status != SJ_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, sj_status_text(status), error->text);
        exit(1);
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double thread_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void append(sj_spool *spool, sj_slice frame)
{
    sj_error error = {0};
    must(sj_spool_append(spool, frame, &error), "spool", &error);
}

static sj_slice recorded_frame(frame_maker *maker, const recorded_block *block)
{
    sj_session_id session;
    sj_error error = {0};
    memset(session.bytes, maker->session_tag, sizeof(session.bytes));
    must(sj_block_set_session(block->bytes, block->size, &session), "block", &error);
    return frame_maker_wrap(maker, SJ_FRAME_BLOCK, (sj_slice){0},
                            (sj_slice){.data = block->bytes, .size = block->size});
}

/* Returns the number of blocks. */
static size_t fill_spool(sj_spool *spool, frame_maker *maker, long blocks, long events,
                         const recorded_blocks *recorded)
{
    maker->function_count = recorded->function_count;
    append(spool, frame_maker_session(maker));
    append(spool, frame_maker_module(maker));
    for (size_t i = 0; i < recorded->count; ++i) {
        append(spool, recorded_frame(maker, &recorded->blocks[i]));
        free(recorded->blocks[i].bytes);
    }
    if (recorded->count > 0) {
        return recorded->count;
    }
    for (long i = 0; i < blocks; ++i) {
        append(spool, frame_maker_block(maker, (uint32_t)events, 0));
    }
    return (size_t)blocks;
}

int main(int argc, char **argv)
{
    const long blocks = argc > 1 ? atol(argv[1]) : 200;
    const long events = argc > 2 ? atol(argv[2]) : 128 * 1024;
    const char *url = argc > 3 ? argv[3] : "ipc://./ingest_bench.ipc";
    const char *clean = "rm -rf ingest_bench.db* ingest_bench.spool";
    sj_error error = {0};
    sj_spool *spool = NULL;
    sj_store *store = NULL;
    sj_ingest *ingest = NULL;
    sj_uplink *uplink = NULL;
    frame_maker maker;
    if (system(clean) != 0) {
        return 1;
    }
    frame_maker_init(&maker, 1);
    maker.steady = argc <= 4 || strcmp(argv[4], "random") != 0;
    recorded_blocks recorded = {0};
    if (argc > 4 && maker.steady) {
        recorded_blocks_load_whole(argv[4], (size_t)blocks, &recorded);
    }
    const sj_spool_options spool_options = {.directory = "ingest_bench.spool"};
    const sj_store_options store_options = {
        .path = "ingest_bench.db", .create = true, .aggregates_delay_ms = SJ_AGGREGATES_DELAY_MS};
    const sj_ingest_options ingest_options = {.urls = &url, .url_count = 1};
    must(sj_spool_open(&spool_options, &spool, &error), "spool", &error);
    const size_t sent = fill_spool(spool, &maker, blocks, events, &recorded);
    free(recorded.blocks);
    sj_spool_counters spooled;
    sj_spool_get_counters(spool, &spooled);
    must(sj_store_open(&store_options, &store, &error), "store", &error);
    must(sj_ingest_start(store, &ingest_options, &ingest, &error), "ingest", &error);
    const sj_uplink_options uplink_options = {
        .channel = &sj_channel_nng, .url = url, .hello = frame_maker_hello(&maker), .window = 16};
    const double begin = now_s();
    must(sj_uplink_start(spool, &uplink_options, &uplink, &error), "uplink", &error);
    must(sj_uplink_drain(uplink, -1), "drain", &error);
    const double took = now_s() - begin;
    sj_ingest_counters counters;
    sj_ingest_get_counters(ingest, &counters);
    sj_uplink_stop(uplink);
    sj_ingest_stop(ingest);
    const double ending = thread_cpu_s();
    while (sj_store_maintain(store)) {
    }
    sj_store_close(store);
    const double ended = thread_cpu_s() - ending;
    struct stat file;
    if (stat("ingest_bench.db", &file) != 0) {
        return 1;
    }
    const double calls = (double)counters.calls;
    printf("calls %.1f M, blocks %zu, commits %llu\n", calls / 1e6, sent,
           (unsigned long long)counters.commits);
    printf("durable, wall         %8.1f M calls/s\n", calls / took / 1e6);
    const double writer = (double)counters.writer_cpu_ns / 1e9;
    printf("writer thread, CPU    %8.1f M calls/s/core\n", calls / writer / 1e6);
    printf("with the last sums    %8.1f M calls/s/core\n", calls / (writer + ended) / 1e6);
    printf("spool                 %8.3f B/call\n", (double)spooled.appended_bytes / calls);
    printf("file, everything      %8.3f B/call\n", (double)file.st_size / calls);
    sj_spool_close(spool);
    frame_maker_deinit(&maker);
    return system(clean) != 0;
}
