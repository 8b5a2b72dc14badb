/* Reports to the recorder a thread of the program that does not handle a heartbeat in time. */
#include "agent/inproc/core/jvm_stall.h"

#include "agent/inproc/core/conversation.h"
#include "agent/inproc/recorder/sys.h"

#include <linux/memfd.h>
#include <string.h>

static bool write_report(int file, const sj_jvm_stall *stall)
{
    uint64_t at = 0;
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t done = 0; done < stall->part_bytes[part];) {
            const long put = SJ_SYS(SYS_pwrite64, file, stall->parts[part] + done,
                                    stall->part_bytes[part] - done, at, 0, 0);
            if (put <= 0) {
                return false;
            }
            done += (uint32_t)put;
            at += (uint64_t)put;
        }
    }
    return true;
}

static sj_status send(sj_link *link, const sj_jvm_stall *stall, int file)
{
    const sj_link_stall message = {.waited_ns = stall->age_ns,
                                   .report_bytes = stall->part_bytes[0] + stall->part_bytes[1],
                                   .name_bytes = stall->name_bytes};
    SJ_TRY(sj_conversation_open_again(link));
    memcpy(sj_link_payload(link), &message, sizeof(message));
    memcpy(sj_link_payload(link) + sizeof(message), stall->name, stall->name_bytes);
    SJ_TRY(sj_link_send_file(link, SJ_LINK_STALL, (uint32_t)sizeof(message) + stall->name_bytes,
                             file));
    return sj_conversation_finish(link);
}

void sj_report_stall(const sj_jvm_stall *stall)
{
    sj_link link = {.socket = -1};
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-stall", MFD_CLOEXEC, 0, 0, 0, 0);
    if (file < 0) {
        return;
    }
    if (write_report((int)file, stall) && sj_conversation_begin()) {
        (void)!send(&link, stall, (int)file); /* It fails if the recorder is gone. */
        sj_link_close(&link);
        sj_conversation_end();
    }
    (void)sj_sys_close((int)file);
}
