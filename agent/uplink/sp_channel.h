/* The channel without threads (sj_channel_sp, channel.h). It has one socket to a collector on this
 * machine, over tcp or ipc (sp_address.h), and speaks SP's REQ (sp_wire.h).
 *
 * All calls come from one thread, and only `wait` blocks. `next_event` reads and writes. If the
 * connection breaks, its questions fail and have to be asked again. The channel hangs up if the
 * collector violates the protocol, or sends nothing for `resend_ms`. */
#ifndef SJ_AGENT_UPLINK_SP_CHANNEL_H
#define SJ_AGENT_UPLINK_SP_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_sp;

#endif
