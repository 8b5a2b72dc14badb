/* Connects the two Objective-C monitors to the recorder. Asks the recorder for the function id of
 * each new method, and reports method implementations that the program replaces. */
#include "agent/inproc/objc/monitor.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/objc/dispatch.h"
#include "agent/inproc/objc/replaced_methods.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

static sj_objc_is_excluded *is_excluded;

_Static_assert(SJ_OBJC_NAME_BYTES + SJ_OBJC_LINEAGE_BYTES + sizeof(sj_link_packet) +
                       sizeof(sj_link_methods) + 1 + sizeof(uint64_t) <=
                   SJ_LINK_MAX_BYTES,
               "a method fits one packet");

static sj_status ask_for_function(sj_link *link, const sj_objc_report *method, uint32_t *function)
{
    uint8_t *at = sj_link_payload(link);
    const sj_link_methods methods = {.count = 1,
                                     .lineage_bytes = method->lineage_bytes,
                                     .names_bytes = method->name_bytes,
                                     .language = SJ_LINK_LANGUAGE_OBJC};
    const uint32_t bytes = (uint32_t)(sizeof(methods) + method->lineage_bytes + method->name_bytes +
                                      1 + sizeof(method->code));
    memcpy(at, &methods, sizeof(methods));
    at += sizeof(methods);
    memcpy(at, method->lineage, method->lineage_bytes);
    at += method->lineage_bytes;
    memcpy(at, method->name, method->name_bytes);
    at += method->name_bytes;
    /* Messages to methods of an excluded module are excluded. */
    *at++ = is_excluded(method->code) ? 1 : 0;
    memcpy(at, &method->code, sizeof(method->code));
    SJ_TRY(sj_link_send(link, SJ_LINK_METHODS, bytes));
    SJ_TRY(sj_link_receive(link));
    sj_link_methods_added added;
    if (link->packet.type != SJ_LINK_METHODS_ADDED ||
        link->packet.payload_bytes != sizeof(added) + 1) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    if (added.count != 1 || added.first_function == 0) {
        return SJ_ECORRUPT;
    }
    *function = link->payload[sizeof(added)] != 0 ? added.first_function : 0;
    return SJ_OK;
}

static bool register_method(const sj_objc_report *method, uint32_t *function)
{
    sj_link link = {.socket = -1};
    if (!sj_conversation_begin()) {
        return false;
    }
    sj_status status = sj_conversation_open_again(&link);
    if (status == SJ_OK) {
        status = ask_for_function(&link, method, function);
    }
    if (status == SJ_OK) {
        status = sj_conversation_finish(&link);
    }
    sj_link_close(&link);
    sj_conversation_end();
    return status == SJ_OK;
}

bool sj_objc_monitor_start_dispatch(sj_objc_is_excluded *excluded)
{
    is_excluded = excluded;
    if (sojourn_agent_state.kept_stubs != 0) {
        sj_objc_stubs_adopt(sojourn_agent_state.kept_stubs);
    }
    return sj_objc_dispatch_start(register_method) == SJ_OK;
}

void sj_objc_monitor_stop_dispatch(void)
{
    sj_objc_counters counters;
    sj_objc_dispatch_stop();
    sj_objc_get_counters(&counters);
    sojourn_agent_state.message_stubs = counters.stubs;
}

_Static_assert(sizeof(sj_link_packet) + sizeof(sj_link_replaced_methods) +
                       SJ_OBJC_REPLACED_TOGETHER * (SJ_OBJC_NAME_BYTES + sizeof(uint64_t)) <=
                   SJ_LINK_MAX_BYTES,
               "changes fit one packet");

static sj_status send_replaced(sj_link *link, const sj_objc_replaced_method *changes,
                               uint32_t count)
{
    const sj_link_replaced_methods head = {.count = count};
    uint8_t *payload = sj_link_payload(link);
    uint8_t *at = payload;
    memcpy(at, &head, sizeof(head));
    at += sizeof(head);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(at, &changes[i].code, sizeof(changes[i].code));
        at += sizeof(changes[i].code);
        memcpy(at, changes[i].name, changes[i].name_bytes);
        at += changes[i].name_bytes;
    }
    SJ_TRY(sj_link_send(link, SJ_LINK_REPLACED_METHODS, (uint32_t)(at - payload)));
    SJ_TRY(sj_link_receive(link));
    return link->packet.type == SJ_LINK_DONE ? SJ_OK : SJ_EPERM;
}

static void report_replaced(const sj_objc_replaced_method *changes, uint32_t count)
{
    sj_link link = {.socket = -1};
    if (!sj_recorder_is_armed() || !sj_conversation_begin()) {
        return;
    }
    if (sj_conversation_open_again(&link) == SJ_OK &&
        send_replaced(&link, changes, count) == SJ_OK) {
        (void)!sj_conversation_finish(&link);
    }
    sj_link_close(&link);
    sj_conversation_end();
}

static bool is_recorded(uint64_t code)
{
    return !is_excluded(code);
}

bool sj_objc_monitor_start_replaced(sj_objc_is_excluded *excluded)
{
    is_excluded = excluded;
    return sj_objc_replaced_start(report_replaced, is_recorded) == SJ_OK;
}
