/* Adapts the StackMapTable of a method to its new code (JVM specification, 4.7.4). */
#ifndef SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H
#define SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/code_layout.h"

/* Appends the content of a StackMapTable for the new code: the frames of `old` at their new
 * offsets. `old` may be empty. If `layout` has a handler, adds the handler's frame. `throwable` is
 * the index of the constant java.lang.Throwable. Returns SJ_ECORRUPT. Returns SJ_EUNSUPPORTED if a
 * frame after `covered_from` has an uninitialised object; then the method cannot have a handler. */
SJ_MUST_CHECK sj_status sj_stack_map_move(sj_slice old, const sj_code_layout *layout,
                                          uint16_t throwable, sj_be_output *output);

#endif
