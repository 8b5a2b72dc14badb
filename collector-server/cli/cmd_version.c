#include "agent/abi/arena.h"
#include "agent/abi/plan.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "proto/block/block.h"
#include "proto/wire/frame.h"

#include <stdio.h>
#include <string.h>

typedef struct version_options {
    bool as_json;
} version_options;

static int run_version(int argc, char **argv)
{
    version_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_version, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first != argc) {
        return sj_command_usage_error(&sj_command_version, "unexpected argument \"%s\"",
                                      argv[first]);
    }
    if (options.as_json) {
        return sj_json_output(&sj_command_version,
                              json_pack("{ss s{si si} si si si}", "version", SJ_VERSION, "frames",
                                        "major", (int)SJ_FRAME_MAJOR, "minor", (int)SJ_FRAME_MINOR,
                                        "blocks", (int)SJ_BLOCK_VERSION, "arenas",
                                        (int)SJ_ARENA_VERSION, "plans", (int)SJ_PLAN_VERSION));
    }
    printf("sojourn %s\n", SJ_VERSION);
    printf("frames %d.%d, blocks %d, arenas %d, plans %d\n", SJ_FRAME_MAJOR, SJ_FRAME_MINOR,
           SJ_BLOCK_VERSION, SJ_ARENA_VERSION, SJ_PLAN_VERSION);
    return SJ_EXIT_OK;
}

static const sj_option version_table[] = {{.name = "json",
                                           .kind = SJ_ARG_FLAG,
                                           .offset = offsetof(version_options, as_json),
                                           .help = "as JSON"},
                                          {0}};

const sj_command sj_command_version = {
    .name = "version",
    .summary = "print the version of Sojourn and of its formats",
    .usage = "sojourn version [OPTIONS]",
    .options = version_table,
    .examples = "Examples:\n"
                "  sojourn version\n"
                "  sojourn --version\n",
    .run = run_version,
};
