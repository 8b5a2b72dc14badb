#include "agent/inproc/hooks/internal.h"

#include <string.h>

sj_hook_change *sj_changes_add(sj_hooked_module *module, uint64_t address, const uint8_t *original,
                               const uint8_t *patched, uint8_t count)
{
    sj_hook_change *change = &module->changes[module->change_count++];
    change->address = address;
    change->bytes = count;
    change->window = count;
    memcpy(change->original, original, count);
    memcpy(change->patched, patched, count);
    return change;
}

void sj_report_failure(sj_hooks_report *report, uint32_t function, sj_skip skip)
{
    if (report->failed < report->failures_capacity) {
        report->failures[report->failed].function = function;
        report->failures[report->failed].skip = skip;
    }
    report->failed++;
}
