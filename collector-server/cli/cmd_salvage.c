#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/maintenance/salvage.h"
#include "proto/base/units.h"

#include <stdio.h>

enum { MOST_SHOWN = 20 };

typedef struct salvage_request {
    bool as_json;
    uint64_t findings;
} salvage_request;

static void print_finding(void *context, const sj_finding *finding)
{
    salvage_request *request = context;
    if (request->findings++ >= MOST_SHOWN) {
        return;
    }
    sj_work_progress_hide();
    fprintf(stderr, "sojourn salvage: session %lld, block %lld (0: none): %s\n",
            (long long)finding->session_id, (long long)finding->block_id, finding->what);
}

static json_t *list_tables(const sj_salvaged *salvaged)
{
    json_t *tables = json_array();
    for (size_t i = 0; i < salvaged->count; ++i) {
        const sj_salvaged_table *table = &salvaged->tables[i];
        json_array_append_new(tables, json_pack("{ss sI sI sI sI sb}", "table", table->name,
                                                "saved", (json_int_t)table->saved, "missing",
                                                (json_int_t)table->missing, "dropped",
                                                (json_int_t)table->dropped, "substitutes",
                                                (json_int_t)table->substitutes,
                                                "more_may_be_missing", (int)table->is_unknown));
    }
    return tables;
}

static void print_table(const sj_salvaged_table *table)
{
    if (table->saved == 0 && table->missing == 0 && !table->is_unknown) {
        return;
    }
    printf("%s: %s saved", table->name, SJ_COUNTED((uint64_t)table->saved, "row"));
    if (table->missing != 0) {
        printf(", %lld missing", (long long)table->missing);
    }
    if (table->is_unknown) {
        printf(", an unknown number%s missing", table->missing != 0 ? " more" : "");
    }
    if (table->dropped != 0) {
        printf(", %lld dropped because the rows that they belong to are lost",
               (long long)table->dropped);
    }
    if (table->substitutes != 0) {
        printf(", %s for lost rows", SJ_COUNTED((uint64_t)table->substitutes, "substitute"));
    }
    printf("\n");
}

static int report_salvaged(const salvage_request *request, const char *file,
                           const sj_salvaged *salvaged)
{
    const bool is_whole = sj_salvaged_is_whole(salvaged);
    const int exit_code = is_whole ? SJ_EXIT_OK : SJ_EXIT_FAILED;
    if (request->as_json) {
        const int written = sj_json_output(
            &sj_command_salvage,
            json_pack("{so sI sb sb sb sI so}", "file", sj_json_clean_string(file), "sessions",
                      (json_int_t)salvaged->sessions, "is_whole", (int)is_whole, "log_is_damaged",
                      (int)salvaged->log_is_damaged, "log_is_foreign",
                      (int)salvaged->log_is_foreign, "findings", (json_int_t)request->findings,
                      "tables", list_tables(salvaged)));
        return written != SJ_EXIT_OK ? written : exit_code;
    }
    for (size_t i = 0; i < salvaged->count; ++i) {
        print_table(&salvaged->tables[i]);
    }
    if (salvaged->log_is_damaged) {
        printf("the log is damaged: changes behind its damaged page are lost\n");
    }
    if (salvaged->log_is_foreign) {
        printf(
            "the log belongs to another file, which was overwritten: its changes are left out\n");
    }
    printf("%s: %s salvaged, %s, %s\n", file, SJ_COUNTED((uint64_t)salvaged->sessions, "session"),
           SJ_COUNTED(request->findings, "finding"),
           is_whole ? "nothing is lost" : "something is lost");
    return exit_code;
}

static int run_salvage(int argc, char **argv)
{
    salvage_request request = {0};
    sj_salvaged salvaged;
    sj_error error = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_salvage, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    if (argc - first != 2) {
        return sj_command_usage_error(&sj_command_salvage,
                                      "name the damaged database and the new one");
    }
    sj_work_progress_start();
    const sj_status status = sj_database_salvage(argv[first], argv[first + 1], print_finding,
                                                 &request, &salvaged, &error);
    sj_work_progress_stop();
    if (request.findings > MOST_SHOWN) {
        fprintf(stderr, "sojourn salvage: and %llu more\n",
                (unsigned long long)(request.findings - MOST_SHOWN));
    }
    const int exit_code = status == SJ_OK ? report_salvaged(&request, argv[first + 1], &salvaged)
                                          : sj_command_failed(&sj_command_salvage, &error);
    sj_salvaged_deinit(&salvaged);
    return exit_code;
}

static const sj_option salvage_options[] = {{.name = "json",
                                             .kind = SJ_ARG_FLAG,
                                             .offset = offsetof(salvage_request, as_json),
                                             .help = "as JSON"},
                                            {0}};

const sj_command sj_command_salvage = {
    .name = "salvage",
    .summary = "make a new database of what can be read in a damaged one",
    .usage = "sojourn salvage [OPTIONS] DAMAGED FILE",
    .help =
        "Reads the database DAMAGED past its damaged pages, without changing it, and makes the\n"
        "new database FILE of what it could read. It computes sums anew from the calls, and\n"
        "says for each table how many rows it saved and how many are missing. Stop the\n"
        "server before. If there is a backup, try `sojourn restore` first.\n",
    .options = salvage_options,
    .examples = "Exit status: 0 all is saved, 1 something is lost or it failed, 3 no such file.\n"
                "\n"
                "Examples:\n"
                "  sojourn salvage lab.db salvaged.db\n"
                "  sojourn salvage --json lab.db salvaged.db\n",
    .run = run_salvage,
};
