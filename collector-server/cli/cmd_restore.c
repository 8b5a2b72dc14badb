#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/maintenance/database_copy.h"
#include "proto/base/units.h"

#include <stdio.h>

enum { MOST_SHOWN = 20 };

typedef struct restore_request {
    bool accepts_damage;
    bool as_json;
    uint64_t findings;
} restore_request;

static void print_finding(void *context, const sj_finding *finding)
{
    restore_request *request = context;
    if (request->findings++ >= MOST_SHOWN) {
        return;
    }
    sj_work_progress_hide();
    fprintf(stderr, "sojourn restore: session %lld, block %lld (0: none): %s\n",
            (long long)finding->session_id, (long long)finding->block_id, finding->what);
}

static int report_restored(const restore_request *request, const char *database,
                           const sj_copied *copied)
{
    if (request->as_json) {
        return sj_json_output(&sj_command_restore,
                              json_pack("{so sI sI sI sI}", "file", sj_json_clean_string(database),
                                        "bytes", (json_int_t)copied->bytes, "sessions",
                                        (json_int_t)copied->sessions, "moved_blocks",
                                        (json_int_t)copied->moved_blocks, "findings",
                                        (json_int_t)request->findings));
    }
    printf("%s: %s restored, %s\n", database, SJ_COUNTED((uint64_t)copied->sessions, "session"),
           SJ_COUNTED(request->findings, "finding"));
    return SJ_EXIT_OK;
}

static int run_restore(int argc, char **argv)
{
    restore_request request = {0};
    sj_copied copied;
    sj_error error = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_restore, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    if (argc - first != 2) {
        return sj_command_usage_error(&sj_command_restore, "name the backup and the database");
    }
    sj_work_progress_start();
    const sj_status status =
        sj_database_restore(argv[first], argv[first + 1], request.accepts_damage, print_finding,
                            &request, &copied, &error);
    sj_work_progress_stop();
    if (request.findings > MOST_SHOWN) {
        fprintf(stderr, "sojourn restore: and %llu more\n",
                (unsigned long long)(request.findings - MOST_SHOWN));
    }
    return status == SJ_OK ? report_restored(&request, argv[first + 1], &copied)
                           : sj_command_failed(&sj_command_restore, &error);
}

static const sj_option restore_options[] = {
    {.name = "damaged",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(restore_request, accepts_damage),
     .help = "restore it although it is damaged, if it can be opened;\n"
             "then `sojourn verify` marks what cannot be read"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(restore_request, as_json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_restore = {
    .name = "restore",
    .summary = "verify a backup and put it in place",
    .usage = "sojourn restore [OPTIONS] FILE DATABASE",
    .help = "Copies the backup FILE, verifies the copy as `sojourn verify` does, and gives it the\n"
            "name DATABASE when it is sound. A database that exists is not overwritten: stop the\n"
            "server and move it away first. Running recordings continue: devices announce their\n"
            "sessions again, and what the backup lacks is counted as lost.\n",
    .options = restore_options,
    .examples = "Exit status: 0 restored, 1 it failed or the backup is damaged, 3 no such file.\n"
                "\n"
                "Examples:\n"
                "  sojourn restore /backup/lab-monday.db lab.db\n"
                "  sojourn restore --damaged /backup/lab-monday.db lab.db\n",
    .run = run_restore,
};
