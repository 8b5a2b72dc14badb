/* The channel without threads (sj_channel_sp, channel.h). It has one socket to a collector on this
 * machine, over tcp or ipc (sp_address.h), and speaks SP's REQ (sp_wire.h).
 *
 * All calls must come from one thread. Only `wait` blocks. `next_event` reads from the socket and
 * writes to it. If the connection breaks, its questions fail (SJ_CHANNEL_FAILED). The channel
 * closes the connection if the collector violates the protocol, or sends no reply for
 * `resend_ms`. */
#ifndef SJ_AGENT_UPLINK_SP_CHANNEL_H
#define SJ_AGENT_UPLINK_SP_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_sp;

#endif
