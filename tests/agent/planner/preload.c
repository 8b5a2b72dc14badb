/* A preloaded library that plans the program that loads it and applies the plan. At exit, it
 * reports how often functions were entered and left. Only preload_test uses it. */
#include "agent/planner/planner.h"
#include "tests/agent/planner/apply.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static applied_plan applied;
static sj_plan plan;
static int report = -1;

static int find_program(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the first module is the program */
}

__attribute__((constructor)) static void apply_to_program(void)
{
    char path[4096];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *report_path = getenv("SJ_TEST_REPORT");
    unsetenv("LD_PRELOAD");
    if (bytes <= 0 || report_path == NULL) {
        return;
    }
    path[bytes] = 0;
    uint64_t bias = 0;
    dl_iterate_phdr(find_program, &bias);
    const sj_planner_options options = {.module_path = path};
    if (sj_plan_make(&options, &plan, NULL) != SJ_OK || !apply_plan(plan.header, bias, &applied)) {
        abort();
    }
    report = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((destructor)) static void write_report(void)
{
    uint64_t entries = 0;
    uint64_t exits = 0;
    uint32_t unbalanced = 0;
    uint64_t open_calls = 0;
    for (uint32_t i = 0; i < applied.function_count; i++) {
        entries += applied.entries[i];
        exits += applied.exits[i];
        if (applied.exits[i] > applied.entries[i]) {
            unbalanced++;
        }
        open_calls += applied.entries[i] - applied.exits[i];
        if (getenv("SJ_TEST_VERBOSE") != NULL && applied.entries[i] != applied.exits[i]) {
            const sj_plan_function *f = &sj_plan_functions(plan.header)[i];
            fprintf(stderr, "%lx %s size %u technique %u: %lu in %lu out\n", (long)f->offset,
                    sj_plan_string(plan.header, f->name), f->size, f->technique,
                    (long)applied.entries[i], (long)applied.exits[i]);
        }
    }
    if (report >= 0) {
        dprintf(report, "entries %lu exits %lu open %ld more_exits %u refused %u\n",
                (unsigned long)entries, (unsigned long)exits, (long)open_calls, unbalanced,
                applied.refused);
    }
}
