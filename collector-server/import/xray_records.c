#include "collector-server/import/xray.h"

sj_status sj_xray_thread(sj_xray *xray, int64_t pid, int64_t tid, uint32_t *thread)
{
    return sj_import_log_thread(xray->log, pid, tid, thread);
}

/* Returns the time in ns of a cycle count, since the first one. */
static sj_status to_ns(sj_xray *xray, uint64_t cycles, int64_t *at_ns)
{
    if (!xray->has_first) {
        xray->has_first = true;
        xray->first_cycles = cycles;
    }
    const __int128 since = (__int128)cycles - xray->first_cycles;
    const __int128 ns = since * 1000000000 / xray->cycles_per_s;
    if (ns > INT64_MAX / 2 || ns < INT64_MIN / 2) {
        return sj_source_fail(xray->source, SJ_ELIMIT, xray->at, "a time is too large");
    }
    *at_ns = (int64_t)ns;
    return SJ_OK;
}

sj_status sj_xray_add(sj_xray *xray, uint32_t thread, sj_xray_kind kind, sj_slice name,
                      uint32_t number, uint64_t cycles)
{
    char made[32];
    int64_t at_ns = 0;
    uint32_t function;
    SJ_TRY(to_ns(xray, cycles, &at_ns));
    const sj_import_thread *known = &xray->log->threads[thread];
    if (xray->is_buffer_start && known->has_events && at_ns < known->last_ns) {
        return sj_source_fail(xray->source, SJ_EUNSUPPORTED, xray->at,
                              "the buffers of a thread are not in the order of time; import the "
                              "text of \"llvm-xray convert\", which sorts them");
    }
    xray->is_buffer_start = false;
    if (kind == SJ_XRAY_EXIT || kind == SJ_XRAY_TAIL_EXIT) {
        return sj_import_log_leave(xray->log, thread, at_ns, false);
    }
    if (name.size == 0) {
        (void)snprintf(made, sizeof(made), "function %u", number);
        name = sj_import_text(made);
        xray->has_numbers = true;
    }
    SJ_TRY(sj_import_log_function(xray->log, name, (sj_slice){0}, &function));
    return sj_import_log_enter(xray->log, thread, function, at_ns);
}
