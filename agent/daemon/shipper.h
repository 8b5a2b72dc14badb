/* The shipper finishes sessions of killed recorders and delivers what recorders left in the spool.
 * It repeats this, one session at a time, also after a reboot or after days without a collector. */
#ifndef SJ_AGENT_DAEMON_SHIPPER_H
#define SJ_AGENT_DAEMON_SHIPPER_H

#include "agent/daemon/enrolment.h"
#include "agent/host/device.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct sj_shipper {
    const char *spool_root;
    const sj_enrolment *enrolment;
    const sj_device *device;
    sj_error quota; /* The latest refusal by a quota that was logged. */
    atomic_bool stop;
} sj_shipper;

/* Tries each session once, except sessions that are being recorded or were set aside. Returns how
 * many of the tried sessions could not be delivered. Blocking. Ends early if `stop` is set, if no
 * collector replies, or after 8 sessions that a quota kept back. */
unsigned sj_shipper_round(sj_shipper *shipper);

#endif
