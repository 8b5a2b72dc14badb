/* The monitor of Objective-C messages, recorded where they are dispatched: asks the recorder for a
 * function of the session for each method.
 */
#include "agent/abi/agent_state.h"
#include "agent/inproc/core/conversation.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/objc/dispatch.h"

#include <string.h>

enum { METHODS_BYTES = SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_methods) };

_Static_assert(SJ_OBJC_BATCH_BYTES + SJ_OBJC_LINEAGE_BYTES + SJ_OBJC_BATCH_METHODS <= METHODS_BYTES,
               "a batch fits one packet");

static sj_status ask_for_functions(sj_link *link, const sj_objc_methods *asked,
                                   uint32_t *first_function, uint8_t *wanted)
{
    uint8_t *payload = sj_link_payload(link);
    const uint32_t count = asked->count;
    const sj_link_methods methods = {
        .count = count, .lineage_bytes = asked->lineage_bytes, .names_bytes = asked->names_bytes};
    uint8_t *names = payload + sizeof(methods) + asked->lineage_bytes;
    memcpy(payload, &methods, sizeof(methods));
    memcpy(payload + sizeof(methods), asked->lineage, asked->lineage_bytes);
    memcpy(names, asked->names, asked->names_bytes);
    /* Messages of modules that are excluded as a whole are excluded, too. */
    uint8_t *is_excluded = names + asked->names_bytes;
    for (uint32_t i = 0; i < count; i++) {
        is_excluded[i] = sj_modules_is_excluded(asked->codes[i]) ? 1 : 0;
    }
    const uint32_t bytes = (uint32_t)(is_excluded + count - payload);
    SJ_TRY(sj_link_send(link, SJ_LINK_METHODS, bytes));
    SJ_TRY(sj_link_receive(link));
    sj_link_methods_added added;
    if (link->packet.type != SJ_LINK_METHODS_ADDED ||
        link->packet.payload_bytes != sizeof(added) + count) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    if (added.count != count || added.first_function == 0) {
        return SJ_ECORRUPT;
    }
    *first_function = added.first_function;
    memcpy(wanted, link->payload + sizeof(added), count);
    return SJ_OK;
}

static bool register_methods(const sj_objc_methods *methods, uint32_t *first_function,
                             uint8_t *wanted)
{
    sj_link link = {.socket = -1};
    if (!sj_conversation_begin()) {
        return false;
    }
    sj_status status = sj_conversation_open_again(&link);
    if (status == SJ_OK) {
        status = ask_for_functions(&link, methods, first_function, wanted);
    }
    if (status == SJ_OK) {
        status = sj_conversation_finish(&link);
    }
    sj_link_close(&link);
    sj_conversation_end();
    return status == SJ_OK;
}

/* Without a runtime there is nothing to do; without memory for stubs messages are not recorded. */
static bool start_dispatch(void)
{
    return sj_objc_start(register_methods) == SJ_OK;
}

static void stop_dispatch(void)
{
    sj_objc_counters counters;
    sj_objc_stop();
    sj_objc_get_counters(&counters);
    sojourn_agent_state.message_stubs = counters.stubs;
}

const sj_monitor sj_monitor_objc = {.bit = SJ_LINK_RUNTIME_OBJC_DISPATCH,
                                    .name = "Objective-C dispatch",
                                    .prepare = sj_hooks_expect_dispatch,
                                    .start = start_dispatch,
                                    .after_fork = sj_objc_after_fork,
                                    .stop = stop_dispatch,
                                    .leaves_stubs = true};
