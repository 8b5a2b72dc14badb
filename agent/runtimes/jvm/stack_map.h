/* Adapts the StackMapTable of a method to its new code (JVM specification, 4.7.4). */
#ifndef SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H
#define SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/code_layout.h"

/* Appends the content of a StackMapTable for the new code: the frames of `old` at their new
 * offsets. `old` may be empty. If `layout` has a handler, adds the handler's frame. If the entry
 * code has a label, adds the label's frame. `throwable` is the index of the constant
 * java.lang.Throwable. Returns SJ_ECORRUPT if `old` is malformed. Returns SJ_EUNSUPPORTED if a
 * frame after `layout->covered_from` has an uninitialised object; then the method cannot have a
 * handler. Also returns SJ_EUNSUPPORTED if the frames together with the handler's would be too
 * many. */
SJ_MUST_CHECK sj_status sj_stack_map_move(sj_slice old, const sj_code_layout *layout,
                                          uint16_t throwable, sj_be_output *output);

#endif
