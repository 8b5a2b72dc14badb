#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

#define NS_PER_MINUTE UINT64_C(60000000000)

/* Upper half: the current minute of CLOCK_MONOTONIC. Lower half: number of reports in that minute.
 */
static _Atomic uint64_t reports_in_minute;

void sj_trace_stack(sj_zombie_trace *trace, void *stack, uint32_t bytes)
{
    const uint64_t from = trace->registers[SJ_TRACE_STACK_POINTER];
    const struct iovec to_part = {.iov_base = stack, .iov_len = bytes};
    const struct iovec from_part = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
    long got = -1;
    if (bytes != 0 && sj_recorder_may_call()) {
        got = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &to_part, 1, &from_part, 1, 0);
    }
    if (got < 0 && bytes != 0) { /* The rest of the stack pointer's page is certainly readable. */
        const uint64_t page_end = sj_page_start(from) + sj_page_bytes();
        got = (long)(page_end - from < bytes ? page_end - from : bytes);
        memcpy(stack, (const void *)(uintptr_t)from, (size_t)got);
    }
    trace->stack_bytes = got > 0 ? (uint32_t)got : 0;
    sj_return_slots_put_back(from, stack, trace->stack_bytes / sizeof(uint64_t));
}

static bool is_within_limit(uint32_t per_minute)
{
    /* If a system call might end the program, the rest of its life counts as one minute. */
    const uint64_t minute =
        sj_recorder_may_call() ? sj_sys_clock_ns(CLOCK_MONOTONIC) / NS_PER_MINUTE + 1 : 0;
    uint64_t seen = atomic_load(&reports_in_minute);
    for (;;) {
        const uint64_t made = seen >> 32 == minute ? (uint32_t)seen : 0;
        if (made >= per_minute) {
            return false;
        }
        if (atomic_compare_exchange_weak(&reports_in_minute, &seen, minute << 32 | (made + 1))) {
            return true;
        }
    }
}

/* True if this site has made fewer than SHARE reports of this kind; counts one more. Two sites with
 * the same bucket overwrite each other's count. So a site may exceed its limit, but never loses a
 * report because of another site. */
static bool is_within_share(uint64_t site, sj_zombie_kind kind)
{
    enum { SITES = 256, SHARE = 8, COUNT_BITS = 8 };
    static _Atomic uint64_t sites[SITES]; /* Hash of the site; COUNT_BITS lowest bits: count. */
    const uint64_t hash = (site ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t tag = hash & ~(uint64_t)((1 << COUNT_BITS) - 1);
    _Atomic uint64_t *bucket = &sites[hash >> 56];
    const uint64_t seen = atomic_load(bucket);
    const bool is_same = (seen ^ tag) >> COUNT_BITS == 0;
    const uint64_t made = is_same ? seen & ((1 << COUNT_BITS) - 1) : 0;
    if (made < SHARE) {
        atomic_store(bucket, tag | (made + 1));
    }
    return made < SHARE;
}

static sj_zombie_report *claim_report(sj_zombie_region *region)
{
    for (uint32_t i = 0; i < SJ_ZOMBIE_REPORTS; i++) {
        uint32_t is_free = SJ_ZOMBIE_REPORT_FREE;
        if (atomic_compare_exchange_strong(&region->reports[i].state, &is_free,
                                           SJ_ZOMBIE_REPORT_WRITING)) {
            return &region->reports[i];
        }
    }
    return NULL;
}

static void copy_class_name(sj_zombie_report *report, const sj_pool_slot *slot)
{
    const char *name = slot->class_name;
    for (uint32_t i = 0; name != NULL && i + 1 < SJ_ZOMBIE_CLASS_BYTES && name[i] != '\0'; i++) {
        report->object.class_name[i] = name[i];
        report->object.class_name[i + 1] = '\0';
    }
}

static void copy_traces(sj_zombie_report *report, const sj_pool_slot *slot)
{
    const uint32_t bytes = sj_heap_pool.stack_bytes;
    const uint8_t *stacks = (const uint8_t *)(slot + 1);
    report->allocation = slot->allocation;
    report->release = slot->release;
    memcpy(report->allocation_stack, stacks, bytes);
    memcpy(report->release_stack, stacks + bytes, bytes);
}

static void write_report(sj_zombie_report *report, const sj_pool_slot *slot, sj_zombie_kind kind,
                         uint64_t address, bool is_write, const sj_zombie_trace *use)
{
    report->kind = kind;
    report->address = address;
    report->is_write = is_write;
    report->size = slot != NULL ? slot->size : 0;
    report->block = slot != NULL ? slot->address : 0;
    report->allocation.ticks = 0;
    report->release.ticks = 0;
    report->object.class_name[0] = '\0';
    if (slot != NULL) {
        copy_traces(report, slot);
        copy_class_name(report, slot);
    }
    sj_report_finish(report, use);
}

void sj_report_fill_kept(sj_zombie_report *report, const sj_kept_block *kept, sj_zombie_kind kind,
                         uint64_t address)
{
    report->kind = kind;
    report->address = address;
    report->is_write = kind == SJ_ZOMBIE_WRITE_AFTER_FREE ? 1 : 0;
    report->size = (uint32_t)kept->usable;
    report->block = kept->address;
    report->allocation.ticks = 0;
    report->release = kept->release;
    report->object.class_name[0] = '\0';
    memcpy(report->release_stack, kept + 1, kept->release.stack_bytes);
}

/* Publishes a report of a write when the code that wrote is not known. */
static void finish_without_use(sj_zombie_report *report)
{
    memset(&report->use, 0, sizeof(report->use));
    report->use.ticks = sj_arch_ticks();
    report->deep_stack = 0;
    report->thread_name[0] = '\0';
    atomic_store_explicit(&report->state, SJ_ZOMBIE_REPORT_FULL, memory_order_release);
}

sj_zombie_on_use sj_report_kept(sj_kept_block *kept, sj_zombie_kind kind, uint64_t address,
                                const sj_zombie_trace *here, uint64_t site)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region == NULL) {
        return SJ_ZOMBIE_CONTINUE;
    }
    const sj_zombie_on_use next = (sj_zombie_on_use)region->settings.on_use;
    if (atomic_exchange(&kept->is_reported, 1) != 0) {
        return next;
    }
    sj_zombie_report *report = sj_report_begin(here != NULL ? site : kept->site, kind);
    if (report != NULL) {
        sj_report_fill_kept(report, kept, kind, address);
        if (here != NULL) {
            sj_report_finish(report, here);
        } else {
            finish_without_use(report);
        }
    }
    return next;
}

/* Counts a use and claims a report. Returns NULL and counts that if the report is suppressed. */
static sj_zombie_report *begin_report(sj_zombie_region *region, uint64_t site, sj_zombie_kind kind)
{
    atomic_fetch_add(&region->counters.uses, 1);
    sj_zombie_report *report =
        is_within_share(site, kind) && is_within_limit(region->settings.reports_per_minute)
            ? claim_report(region)
            : NULL;
    if (report == NULL) {
        atomic_fetch_add(&region->counters.suppressed, 1);
    }
    return report;
}

sj_zombie_report *sj_report_begin(uint64_t site, sj_zombie_kind kind)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    return region != NULL ? begin_report(region, site, kind) : NULL;
}

/* Claims a large stack buffer of the region. Returns 1 + its index, or 0 if all are in use. */
static uint32_t claim_deep_stack(void)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    for (uint32_t i = 0; region != NULL && i < SJ_ZOMBIE_DEEP_STACKS; i++) {
        if (atomic_exchange(&region->deep[i].is_used, 1) == 0) {
            return i + 1;
        }
    }
    return 0;
}

void sj_report_finish(sj_zombie_report *report, const sj_zombie_trace *use)
{
    report->use = *use;
    report->use.ticks = sj_arch_ticks();
    report->use.tid = sj_recorder_may_call() ? sj_sys_tid() : 0;
    report->thread_name[0] = '\0';
    report->deep_stack = claim_deep_stack();
    if (report->deep_stack != 0) {
        sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
        sj_trace_stack(&report->use, region->deep[report->deep_stack - 1].bytes,
                       SJ_ZOMBIE_DEEP_BYTES);
    } else {
        sj_trace_stack(&report->use, report->use_stack, SJ_ZOMBIE_USE_STACK_BYTES);
    }
    if (sj_recorder_may_call()) {
        (void)SJ_SYS(SYS_prctl, PR_GET_NAME, report->thread_name, 0, 0, 0, 0);
    }
    atomic_store_explicit(&report->state, SJ_ZOMBIE_REPORT_FULL, memory_order_release);
}

void sj_report_stop(void)
{
    (void)SJ_SYS(SYS_tgkill, sj_sys_pid(), sj_sys_tid(), SIGABRT, 0, 0, 0);
}

void sj_report_stop_if(sj_zombie_on_use next)
{
    if (next == SJ_ZOMBIE_STOP) {
        sj_report_stop();
    }
}

sj_zombie_on_use sj_report_use(sj_pool_slot *slot, sj_zombie_kind kind, uint64_t address,
                               bool is_write, const sj_zombie_trace *use, uint64_t site)
{
    sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    if (region == NULL) {
        return SJ_ZOMBIE_CONTINUE;
    }
    const sj_zombie_on_use next = (sj_zombie_on_use)region->settings.on_use;
    if (slot != NULL && atomic_exchange(&slot->is_reported, 1) != 0) {
        return next;
    }
    sj_zombie_report *report = begin_report(region, site, kind);
    if (report != NULL) {
        write_report(report, slot, kind, address, is_write, use);
    }
    return next;
}
