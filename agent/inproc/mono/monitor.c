/* Starts and updates the recording of Mono's methods. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

static bool was_tried; /* True once sj_mono_monitor_start was called. */
static bool is_started;
static bool has_decided_lines; /* True once it was decided whether lines are counted. */

static bool was_launched(void)
{
    return atomic_load(&sojourn_agent_state.phase) == SJ_AGENT_STATE_LAUNCHED;
}

void sj_mono_monitor_on_modules(void (*start)(void))
{
    if (was_launched() && !is_started) {
        sj_mono_watch_for_launch(start);
    }
}

static sj_status send_no_methods(sj_link *link, void *context)
{
    memcpy(sj_link_payload(link), context, sizeof(sj_link_no_methods));
    return sj_link_send(link, SJ_LINK_NO_METHODS, sizeof(sj_link_no_methods));
}

/* Reports to the recorder once that the runtime lacks a function. */
static void report_no_methods(void)
{
    static bool is_reported;
    sj_link_no_methods lacking;
    if (!is_reported && sj_mono_find_lacking(&lacking)) {
        is_reported = sj_conversation_ask(send_no_methods, &lacking);
    }
}

bool sj_mono_monitor_start(uint32_t runtimes, sj_mono_hook *hook)
{
    const bool is_launched = was_launched();
    sj_mono_set_hook(hook);
    if (!was_tried && is_launched) {
        sj_mono_set_compile_again();
    }
    was_tried = true;
    if (sj_mono_start(!is_launched) != SJ_OK) {
        report_no_methods();
        return false;
    }
    is_started = true;
    if ((runtimes & SJ_LINK_RUNTIME_MONO_IN_PLACE) != 0) {
        sj_mono_prefer_in_place();
    }
    if (!has_decided_lines && (runtimes & SJ_LINK_RUNTIME_MONO_LINES) != 0) {
        has_decided_lines = true;
        sj_mono_start_lines(is_launched);
    }
    const bool is_done = is_launched || sj_mono_plan_compiled();
    atomic_store(&sojourn_agent_state.bind_again, is_done ? 0 : 1);
    return true;
}

void sj_mono_monitor_select(void)
{
    if (sj_recorder_is_armed() && is_started) {
        const bool is_done = sj_mono_reselect();
        atomic_store(&sojourn_agent_state.bind_again, is_done ? 0 : 1);
    }
}
