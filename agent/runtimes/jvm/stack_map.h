/* The StackMapTable of a method (The Java Virtual Machine Specification, 4.7.4), moved with its
 * code. */
#ifndef SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H
#define SJ_AGENT_RUNTIMES_JVM_STACK_MAP_H

#include "agent/runtimes/jvm/big_endian.h"
#include "agent/runtimes/jvm/code_layout.h"

/* sj_stack_map_move appends the contents of a StackMapTable for the new code: the frames of `old`
 * (empty: none) at their new places and, if `layout` has a handler, that of the handler at the end
 * of the code. `throwable` is the constant of java.lang.Throwable. SJ_ECORRUPT; SJ_EUNSUPPORTED a
 * frame behind `covered_from` has an object that is not initialised: there can be no handler. */
SJ_MUST_CHECK sj_status sj_stack_map_move(sj_slice old, const sj_code_layout *layout,
                                          uint16_t throwable, sj_be_output *output);

#endif
