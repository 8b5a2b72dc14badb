/* The monitor of Java methods: asks the recorder to put probes into the classes that a JVM in the
 * process defines. */
#include "agent/inproc/jvm/jvm.h"

#include "agent/inproc/core/conversation.h"
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/recorder/sys.h"

#include <linux/memfd.h>
#include <string.h>

static bool write_file(int file, const uint8_t *bytes, uint32_t size)
{
    for (uint32_t at = 0; at < size;) {
        const long put = SJ_SYS(SYS_pwrite64, file, bytes + at, size - at, at, 0, 0);
        if (put <= 0) {
            return false;
        }
        at += (uint32_t)put;
    }
    return true;
}

static sj_status take_answer(const sj_link *link, int file, sj_jvm_rewritten *rewritten)
{
    sj_link_class_added added;
    if (link->packet.type == SJ_LINK_SKIP) {
        return SJ_OK;
    }
    if (link->packet.type != SJ_LINK_CLASS_ADDED || link->packet.payload_bytes != sizeof(added)) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    if (added.class_bytes > SJ_LINK_CLASS_BYTES) {
        return SJ_ECORRUPT;
    }
    *rewritten = (sj_jvm_rewritten){.file = file, .size = added.class_bytes};
    return SJ_OK;
}

static sj_status ask(sj_link *link, const sj_jvm_class *class, int file,
                     sj_jvm_rewritten *rewritten)
{
    const sj_link_class asked = {
        .loader = class->loader, .is_system = class->is_system ? 1 : 0, .class_bytes = class->size};
    SJ_TRY(sj_conversation_open_again(link));
    memcpy(sj_link_payload(link), &asked, sizeof(asked));
    SJ_TRY(sj_link_send_file(link, SJ_LINK_CLASS, sizeof(asked), file));
    SJ_TRY(sj_link_receive(link));
    sj_jvm_rewritten answered = {.file = -1};
    SJ_TRY(take_answer(link, file, &answered));
    SJ_TRY(sj_conversation_finish(link));
    *rewritten = answered;
    return SJ_OK;
}

static bool rewrite_class(const sj_jvm_class *class, sj_jvm_rewritten *rewritten)
{
    sj_link link = {.socket = -1};
    sj_status status = SJ_ELIMIT;
    if (class->size > SJ_LINK_CLASS_BYTES) {
        return false;
    }
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-class", MFD_CLOEXEC, 0, 0, 0, 0);
    if (file < 0) {
        return false;
    }
    if (write_file((int)file, class->bytes, class->size) && sj_conversation_begin()) {
        status = ask(&link, class, (int)file, rewritten);
        sj_link_close(&link);
        sj_conversation_end();
    }
    if (status != SJ_OK || rewritten->size == 0) {
        (void)sj_sys_close((int)file);
    }
    return status == SJ_OK;
}

static sj_status report(sj_link *link)
{
    sj_jvm_counters counters;
    sj_jvm_get_counters(&counters);
    const sj_link_jvm_state state = {.classes = counters.classes,
                                     .unanswered = counters.unanswered,
                                     .leaf_stubs = counters.led,
                                     .wrappers = counters.unled,
                                     .is_unknown = counters.is_unknown ? 1 : 0};
    SJ_TRY(sj_conversation_open_again(link));
    memcpy(sj_link_payload(link), &state, sizeof(state));
    SJ_TRY(sj_link_send(link, SJ_LINK_JVM_STATE, sizeof(state)));
    return sj_conversation_finish(link);
}

static void report_end(void)
{
    sj_link link = {.socket = -1};
    if (sj_conversation_begin()) {
        (void)!report(&link); /* the recorder is gone: nobody to report to */
        sj_link_close(&link);
        sj_conversation_end();
    }
}

static bool start_jvm(void)
{
    const sj_jvm_options options = {.rewrite = rewrite_class,
                                    .on_end = report_end,
                                    .system_classes =
                                        sj_monitors_are_chosen(SJ_LINK_RUNTIME_JVM_SYSTEM)};
    sj_jvm_start(&options);
    return true;
}

const sj_monitor sj_monitor_jvm = {.bit = SJ_LINK_RUNTIME_JVM,
                                   .name = "Java methods",
                                   .start = start_jvm,
                                   .on_modules = sj_jvm_watch_for_launch};
