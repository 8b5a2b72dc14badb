#include "agent/abi/arena.h"
#include "agent/abi/plan.h"
#include "collector-server/cli/commands.h"
#include "proto/block/block.h"
#include "proto/wire/frame.h"

#include <stdio.h>
#include <string.h>

static int run_version(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return sj_command_help(&sj_command_version);
    }
    if (argc > 1) {
        return sj_command_usage_error(&sj_command_version, "unexpected argument \"%s\"", argv[1]);
    }
    printf("sojourn %s\n", SJ_VERSION);
    printf("frames %d.%d, blocks %d, arenas %d, plans %d\n", SJ_FRAME_MAJOR, SJ_FRAME_MINOR,
           SJ_BLOCK_VERSION, SJ_ARENA_VERSION, SJ_PLAN_VERSION);
    return SJ_EXIT_OK;
}

const sj_command sj_command_version = {
    .name = "version",
    .summary = "print the version of Sojourn and of its formats",
    .usage = "sojourn version",
    .examples = "Examples:\n"
                "  sojourn version\n"
                "  sojourn --version\n",
    .run = run_version,
};
