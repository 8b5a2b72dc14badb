/* Constants for record_code.S: the recorder's data of a thread (recorder.h), records (record.h),
 * and the frame of a probe. counted.c checks them. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_RECORD_CODE_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_AARCH64_RECORD_CODE_H

#define SJ_OWN_LOW 120
#define SJ_OWN_SPAN 128
#define SJ_OWN_REACH 136
#define SJ_OWN_FUNCTIONS 144
#define SJ_OWN_RANDOM 152
#define SJ_OWN_COUNTDOWN 156
#define SJ_OWN_OPEN_SAMPLES 160
#define SJ_OWN_SAMPLES 168

#define SJ_MOST_SAMPLES_BIT 3 /* SJ_OPEN_SAMPLES */
#define SJ_REACH_BIT 13       /* SJ_SHORT_REACH_BYTES */
#define SJ_ENTER_MARK 0xa000  /* upper half of SJ_SHORT_FILLER */
#define SJ_LEAVE_MARK 0xb000  /* the same for an exit */
#define SJ_TAIL_MARK 0xf000   /* upper half of SJ_SHORT_TAIL_CALL */
#define SJ_LEAVE_BIT 30       /* bit of a tag */
#define SJ_TAIL_BIT 32        /* SJ_STACK_TAIL_CALL, in the word above a tag */
#define SJ_UNTIMED_BIT 33     /* SJ_STACK_UNTIMED, in the word above a tag */

#define SJ_FRAME_BYTES 64
#define SJ_RETURN_AT 56 /* offset in the frame where x30 is saved while the slow path runs */
#define SJ_SLOW_TOUCHED_BYTES 2560 /* SJ_STUB_TOUCHED_BYTES */

#endif
