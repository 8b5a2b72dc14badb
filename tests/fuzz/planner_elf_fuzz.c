/* Plans arbitrary bytes as a module. The planner refuses them, or makes a plan that passes its own
 * check. */
#include "agent/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int file = memfd_create("planner_elf", MFD_CLOEXEC);
    if (file < 0 || size == 0 || write(file, data, size) != (ssize_t)size) {
        close(file);
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    const sj_planner_options options = {
        .module_path = path, .debug_root = "/nonexistent", .library_calls = true};
    sj_plan plan;
    if (sj_plan_make(&options, &plan, NULL) == SJ_OK) {
        if (sj_plan_check(plan.header, plan.size_bytes) != SJ_OK) {
            abort();
        }
        sj_plan_free(&plan);
    }
    close(file);
    return 0;
}
