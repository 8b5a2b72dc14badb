#include "agent/host/directories.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/spool_discard.h"
#include "collector-server/cli/spool_flush.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <limits.h>
#include <stdio.h>

static int flush_all(const char *root, const char *to, int64_t wait_ms, bool as_json)
{
    const sj_flush_request request = {
        .command = &sj_command_flush, .root = root, .collector = to, .wait_ms = wait_ms};
    sj_flush_totals totals;
    sj_error error = {0};
    sj_work_progress_start();
    if (sj_flush_spool(&request, &totals, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_flush, &error);
    }
    const bool is_done = totals.kept == 0 && totals.refused == 0;
    if (as_json) {
        const int written = sj_json_output(
            &sj_command_flush,
            json_pack("{sI sI sI sI sI}", "finished", (json_int_t)totals.salvaged, "delivered",
                      (json_int_t)totals.delivered, "kept", (json_int_t)totals.kept, "refused",
                      (json_int_t)totals.refused, "being_recorded", (json_int_t)totals.in_use));
        return written != SJ_EXIT_OK || is_done ? written : SJ_EXIT_FAILED;
    }
    if (totals.salvaged != 0) {
        printf("%s finished whose recorder was killed\n", SJ_COUNTED(totals.salvaged, "session"));
    }
    printf("%s delivered, %u kept, %u being recorded", SJ_COUNTED(totals.delivered, "session"),
           totals.kept, totals.in_use);
    if (totals.refused != 0) {
        printf(", %u refused in part", totals.refused);
    }
    printf("\n");
    return is_done ? SJ_EXIT_OK : SJ_EXIT_FAILED;
}

static int discard(const char *root, const char *id, bool as_json)
{
    sj_discarded discarded;
    char bytes[SJ_BYTES_TEXT_BYTES];
    sj_error error = {0};
    if (sj_discard_spool(root, id, &discarded, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_flush, &error);
    }
    if (as_json) {
        return sj_json_output(&sj_command_flush,
                              json_pack("{ss sI sI sI}", "discarded", discarded.session, "frames",
                                        (json_int_t)discarded.frames, "bytes",
                                        (json_int_t)discarded.bytes, "refused",
                                        (json_int_t)discarded.refused));
    }
    printf("session %s discarded: %s (%s) that no collector has", discarded.session,
           SJ_COUNTED(discarded.frames, "frame"), sj_format_bytes((int64_t)discarded.bytes, bytes));
    if (discarded.refused != 0) {
        printf(", and %llu refused or damaged", (unsigned long long)discarded.refused);
    }
    printf("\n");
    return SJ_EXIT_OK;
}

typedef struct flush_options {
    const char *spool;
    const char *discard;
    const char *collector;
    int64_t wait_ms;
    bool as_json;
} flush_options;

static int run_flush(int argc, char **argv)
{
    flush_options options = {.wait_ms = SJ_FLUSH_USUAL_WAIT};
    char usual[PATH_MAX];
    sj_error error = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_flush, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first != argc) {
        return sj_command_usage_error(&sj_command_flush, "unexpected argument \"%s\"", argv[first]);
    }
    if (options.spool == NULL) {
        if (sj_state_directory("spool", usual, sizeof(usual), &error) != SJ_OK) {
            return sj_command_failed(&sj_command_flush, &error);
        }
        options.spool = usual;
    }
    if (options.discard != NULL) {
        return discard(options.spool, options.discard, options.as_json);
    }
    return flush_all(options.spool, options.collector, options.wait_ms, options.as_json);
}

static const sj_option flush_table[] = {
    {.name = "spool",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flush_options, spool),
     .help = "the spool (default: that of `sojourn record`)"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flush_options, collector),
     .help = "deliver to this server instead"},
    {.name = "wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(flush_options, wait_ms),
     .least = 0,
     .most = 86400 * 1000,
     .help = "wait for each session (default 10s) or, with a database,\n"
             "for its next answer (default 1m)"},
    {.name = "discard",
     .argument = "SESSION",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flush_options, discard),
     .help = "delete this session's frames instead, for example because\n"
             "its database is gone (the beginning of its id)"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(flush_options, as_json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_flush = {
    .name = "flush",
    .summary = "deliver what earlier recordings could not",
    .usage = "sojourn flush [OPTIONS]",
    .help =
        "Sends the frames in the spool to their server or database, and deletes what was\n"
        "acknowledged. Recordings in progress are not touched. Recordings whose recorder was\n"
        "killed are finished first: their last calls are read from shared memory.\n\n"
        "Frames that the collector refuses for good are kept, up to 64 MiB a session (more are\n"
        "only counted), and reported each time, until you discard them.\n",
    .options = flush_table,
    .examples = "Examples:\n"
                "  sojourn flush\n"
                "  sojourn flush --collector tcp://collector:7654 --wait 1m\n"
                "  sojourn flush --discard c2452d0f\n",
    .run = run_flush,
};
