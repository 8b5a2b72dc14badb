#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/maintenance/database_copy.h"
#include "proto/base/units.h"

#include <stdio.h>

typedef struct backup_request {
    const char *database;
    bool as_json;
} backup_request;

static int report_backup(const backup_request *request, const char *file, const sj_copied *copied)
{
    const int exit_code = copied->missing_blocks == 0 ? SJ_EXIT_OK : SJ_EXIT_FAILED;
    if (copied->missing_blocks != 0) {
        sj_command_error(&sj_command_backup, exit_code,
                         "%s: %s cannot be read from files and only their bytes are missing: %s",
                         file, SJ_COUNTED((uint64_t)copied->missing_blocks, "moved block"),
                         copied->why.text);
    }
    if (request->as_json) {
        const int written = sj_json_output(
            &sj_command_backup,
            json_pack("{so sI sI sI sI}", "file", sj_json_clean_string(file), "bytes",
                      (json_int_t)copied->bytes, "sessions", (json_int_t)copied->sessions,
                      "moved_blocks", (json_int_t)copied->moved_blocks, "missing_blocks",
                      (json_int_t)copied->missing_blocks));
        return written != SJ_EXIT_OK ? written : exit_code;
    }
    printf("%s: %s, %lld bytes\n", file, SJ_COUNTED((uint64_t)copied->sessions, "session"),
           (long long)copied->bytes);
    if (copied->moved_blocks != copied->missing_blocks) {
        printf("%s taken in from files beside the database\n",
               SJ_COUNTED((uint64_t)(copied->moved_blocks - copied->missing_blocks), "block"));
    }
    return exit_code;
}

static int run_backup(int argc, char **argv)
{
    backup_request request = {0};
    sj_copied copied;
    sj_error error = {0};
    char path[PATH_MAX];
    int first = 0;
    const int code = sj_options_parse(&sj_command_backup, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    if (first == argc) {
        return sj_command_usage_error(&sj_command_backup, "which FILE is the copy to be?");
    }
    const int file_code =
        sj_query_parse_file(&sj_command_backup, argc, argv, first + 1, &request.database);
    if (file_code >= 0) {
        return file_code;
    }
    sj_work_progress_start();
    sj_status status = sj_database_path(request.database, path, &error);
    if (status == SJ_OK) {
        status = sj_database_backup(path, argv[first], &copied, &error);
    }
    sj_work_progress_stop();
    return status == SJ_OK ? report_backup(&request, argv[first], &copied)
                           : sj_command_failed(&sj_command_backup, &error);
}

static const sj_option backup_options[] = {SJ_DATABASE_OPTION(offsetof(backup_request, database)),
                                           {.name = "json",
                                            .kind = SJ_ARG_FLAG,
                                            .offset = offsetof(backup_request, as_json),
                                            .help = "as JSON"},
                                           {0}};

const sj_command sj_command_backup = {
    .name = "backup",
    .summary = "copy a database while it is written to",
    .usage = "sojourn backup [OPTIONS] FILE [DATABASE]",
    .help =
        "Copies the present state of a database to FILE. The server may run: it does not wait,\n"
        "and the copy ends however much data arrives. FILE appears when it is complete and on the\n"
        "disk; an existing file is not overwritten. Blocks that were moved into files are "
        "copied.\n",
    .options = backup_options,
    .examples =
        "Exit status: 0 copied, 1 it failed or moved blocks are missing, 3 no such database.\n"
        "\n"
        "Examples:\n"
        "  sojourn backup /backup/lab-monday.db lab.db\n"
        "  sojourn backup --json \"/backup/$(date +%F).db\" lab.db\n",
    .run = run_backup,
};
