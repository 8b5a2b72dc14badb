/* The status that only an Ack has, beside those of sj_status. */
#ifndef SJ_PROTO_WIRE_ACK_STATUS_H
#define SJ_PROTO_WIRE_ACK_STATUS_H

#include "proto/base/status.h"

/* The device's quota of the day is used up. The sender keeps the frame; it is stored later. */
#define SJ_EQUOTA ((sj_status)(SJ_EUNSUPPORTED + 1))

#endif
