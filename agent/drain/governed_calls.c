#include "agent/drain/governed_calls.h"

#include "agent/assembler/managed_calls.h"
#include "agent/assembler/untimed_entry.h"

static bool is_untimed_entry(const sj_record *entry)
{
    const uint64_t stack = sj_record_stack(entry);
    return (stack & SJ_UNTIMED_ENTRY) != 0 && !sj_record_is_managed(stack);
}

void sj_governed_calls_count(sj_governed_process *governed, const sj_record *records, size_t count)
{
    uint64_t *calls = sj_governed_process_calls(governed);
    uint64_t *untimed = sj_governed_process_untimed(governed);
    uint64_t counted = 0;
    uint64_t without_clock = 0;
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        /* The tag of an entry is the function's number. */
        if (tag < SJ_GOVERNED_PROCESS_FUNCTIONS) {
            __atomic_store_n(&calls[tag], calls[tag] + 1, __ATOMIC_RELAXED);
            counted++;
            if (is_untimed_entry(&records[i])) {
                /* After the call count, so that no reader sees more untimed calls than calls. */
                __atomic_store_n(&untimed[tag], untimed[tag] + 1, __ATOMIC_RELEASE);
                without_clock++;
            }
            highest = tag > highest ? tag : highest;
        }
    }
    sj_governed_process_count(
        governed, (double)counted - (1 - SJ_UNTIMED_PRICE) * (double)without_clock, highest);
}
