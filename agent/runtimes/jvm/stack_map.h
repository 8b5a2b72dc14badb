/* Moves the StackMapTable of a method with its code (The Java Virtual Machine Specification,
 * 4.7.4). */
#ifndef SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H
#define SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/code_layout.h"

/* Appends the contents of a StackMapTable for the new code: the frames of `old` (empty: none) at
 * their new positions. If `layout` has a handler, its frame at the end of the code is added.
 * `throwable` is the constant of java.lang.Throwable. Returns SJ_ECORRUPT. Returns SJ_EUNSUPPORTED
 * if a frame after `covered_from` has an uninitialised object: then a handler is impossible. */
SJ_MUST_CHECK sj_status sj_stack_map_move(sj_slice old, const sj_code_layout *layout,
                                          uint16_t throwable, sj_be_output *output);

#endif
